"""Full dissection of single frames: a tree with every field's name, value, meaning and place in the frame."""
