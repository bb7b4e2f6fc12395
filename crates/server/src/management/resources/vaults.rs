//! `/external-vaults`

use super::super::call::{Call, Outcome, refuse, text};

/// No external vault is read here.
pub(crate) fn change(call: &Call<'_>) -> Outcome {
    if call.segment != "hashicorp" {
        return refuse(404, format!("the external vault `{}` is not supported", call.segment));
    }
    let payload = call.payload()?;
    if text(&payload, "secretId").is_none() {
        return refuse(400, "Missing parameters in payload");
    }
    refuse(400, "HashiCorp vaults are not supported; secrets come from files and environment variables (`[secrets]`)")
}
