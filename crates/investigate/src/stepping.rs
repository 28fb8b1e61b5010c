//! Through a saved slice, from one statement to the next, with the values that they really had:
//! [`stepper`] goes to steps and looks around there, [`values`] tells what a step read and changed.

pub mod stepper;
pub mod values;

pub use stepper::Stepper;
