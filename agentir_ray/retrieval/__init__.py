"""Rankings into better rankings: fusing several, and ordering the best again by a dearer judgement."""
