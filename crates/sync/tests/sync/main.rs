//! State, entities and prediction: models against the implementation, and golden bytes.

mod golden;
mod keyed_model;
mod meeting;
mod plain;
mod prediction_model;
mod retreat;
mod streams;
mod succession;
mod world_model;
