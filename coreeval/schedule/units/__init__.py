"""The unit files that `coreeval schedule install` writes, as templates."""
