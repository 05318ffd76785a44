"""How the product speaks: short sentences, few numbers, and no words of the house."""
