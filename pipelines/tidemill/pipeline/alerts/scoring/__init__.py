"""A model's score as the input of a rule.

    rule: model, inputs ──► model_version   which version that is now, by the registry or the file
    answered rows ──────► scores ──Arrow──► loaded_model, once for each worker and version ──► score

A model file is code: to load one is to run what its author wrote.
"""
