"""What the GAN plugin carries: a subset of MNIST, a pinned classifier, and what to compare with.

Each ``.npz`` holds plain arrays; the ``.json`` beside it says how it was made, by which tool in
``plugins/gan/tools``, under which licence, and which checksums it must have.
"""
