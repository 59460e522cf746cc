"""The version of the code that makes data.

Raise it together with an edit that changes questions, exemplars, instructions, paraphrases or the
corpus of toy bases. All of them are then made again, except the replies of chat models.
"""

DATA_VERSION = 1
