//! Checks documents against the schemas in docs/schemas.

use std::fs;
use std::path::Path;

use serde_json::Value;

/// Panics unless `document` obeys `docs/schemas/NAME.schema.json`.
pub fn assert_schema(document: &Value, name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/schemas/{name}.schema.json"));
    let schema = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let schema = serde_json::from_slice(&schema).expect("the schema is JSON");
    let validator = jsonschema::validator_for(&schema).expect("a valid schema");
    let errors = validator.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path()));
    let errors: Vec<String> = errors.take(5).collect();
    assert!(errors.is_empty(), "{name}: {errors:#?}");
}
