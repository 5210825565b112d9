"""Result files: reading them, the ratios they support, and what all reports share."""
