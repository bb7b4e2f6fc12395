//! APIs of all providers, and the change of the provider of one.

use serde_json::{Value, json};

use crate::http::Response;
use crate::identity::{shown, users};
use crate::page::Page;
use crate::problem::Problem;
use crate::route::{Call, Registration};
use crate::store::{Filter, Kind, Object, Term};

pub(super) const HANDLERS: &[Registration] =
    &[("GET", "/apis", list), ("POST", "/apis/{apiId}/change-provider", change_provider)];

/// An API as the lists of an administrator have it.
pub(crate) fn entry(api: &Object) -> Value {
    json!({
        "provider": shown(&api.owner, &api.organization), "name": api.name, "version": api.text("version"), "id": api.id,
    })
}

fn list(call: &Call<'_>) -> Result<Response, Problem> {
    let page = Page::of(&call.query);
    let query = call.query.get("query").unwrap_or_default();
    let filter = Filter::new(Kind::Api, call.organization()).query(&Term::parse(query));
    let (apis, total) = call.control.store.read(|tx| {
        let total = tx.count(&filter)?;
        Ok((tx.list(&filter.page(page.offset, page.limit))?, total))
    })?;
    let mut body = page.body("/apis", &[("query", query)], apis.iter().map(entry).collect(), total);
    if let Some(members) = body.as_object_mut()
        && let Some(list) = members.shift_remove("list")
    {
        members.insert("apis".into(), list);
    }
    Ok(Response::json(200, &body))
}

fn change_provider(call: &Call<'_>) -> Result<Response, Problem> {
    let provider = call.needed("provider")?;
    call.control.change_served(|tx| {
        let found = tx.get(Kind::Api, call.organization(), call.id())?;
        let mut api = found.ok_or_else(|| Problem::not_found("API", call.id()))?;
        let (user, organization) = users::identify(tx, provider)?;
        if organization != call.organization() {
            let text = format!("The provider {provider} is of another tenant");
            return Err(Problem::rejected(901_409, "Tenant mismatch", text));
        }
        if tx.find(Kind::User, &organization, &user)?.is_none() {
            return Err(Problem::bad_request(format!("There is no user {provider}")));
        }
        api.owner = user;
        tx.update(&mut api)?;
        tx.audit(call.organization(), &call.caller.shown(), "change-provider", Kind::Api, &api.id)
    })?;
    Ok(Response::empty(200))
}
