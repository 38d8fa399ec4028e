"""The paper's Table 1: handwritten algebra."""
