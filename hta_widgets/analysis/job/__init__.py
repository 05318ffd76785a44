"""The whole job replayed: operations of all ranks, where they meet, and what slow ones cost."""
