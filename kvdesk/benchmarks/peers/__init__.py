"""`kvdesk bench peers`: the same conversations through kvdesk and through other programs that run the same model."""
