"""The flagship: a Haiku GAN trained on MNIST. The tutorial is in `demo.py`."""
