"""kinematics: a track that contradicts itself."""
