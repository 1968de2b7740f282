"""Plan before you train: what a step would take on so many hosts and such a network, dense and by every plan."""
