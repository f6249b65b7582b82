//! Events to findings. One file a rule: pure functions of a [`weir_model::trace::Recording`].
