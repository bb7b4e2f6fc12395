//! Ratings of APIs and MCP servers, one of each user.

use serde_json::{Map, Value, json};

use super::apis;
use crate::http::Response;
use crate::page::Page;
use crate::problem::Problem;
use crate::route::{Call, Registration};
use crate::schema::{self, Is, Members};
use crate::store::{Filter, Kind, Object, Transaction};

pub(super) const HANDLERS: &[Registration] = &[
    ("GET", "/apis/{apiId}/ratings", list),
    ("GET", "/apis/{apiId}/user-rating", get),
    ("PUT", "/apis/{apiId}/user-rating", put),
    ("DELETE", "/apis/{apiId}/user-rating", delete),
    ("GET", "/mcp-servers/{mcpServerId}/ratings", list),
    ("GET", "/mcp-servers/{mcpServerId}/user-rating", get),
    ("PUT", "/mcp-servers/{mcpServerId}/user-rating", put),
    ("DELETE", "/mcp-servers/{mcpServerId}/user-rating", delete),
];

const MEMBERS: Members =
    &[("ratingId", Is::Text), ("apiId", Is::Text), ("ratedBy", Is::Short(50)), ("rating", Is::Number)];

/// The best rating; the worst is 1.
const RATING_MAX: u64 = 5;

/// The member of an API that keeps the average.
pub(crate) const AVERAGE: &str = "avgRating";

fn stars(rating: &Object) -> u64 {
    rating.document.get("rating").and_then(Value::as_u64).unwrap_or_default()
}

fn body(rating: &Object) -> Value {
    json!({"ratingId": rating.id, "apiId": rating.parent, "ratedBy": rating.owner, "rating": stars(rating)})
}

fn all(tx: &Transaction<'_>, api: &Object) -> Result<Vec<Object>, Problem> {
    tx.list(&Filter::new(Kind::Rating, &api.organization).parent(&api.id))
}

fn average(ratings: &[Object]) -> String {
    match ratings.len() {
        0 => "0.0".to_owned(),
        count => format!("{:.1}", ratings.iter().map(stars).sum::<u64>() as f64 / count as f64),
    }
}

fn list(call: &Call<'_>) -> Result<Response, Problem> {
    let (ratings, api) = call.control.store.read(|tx| {
        let api = apis::by_id(tx, call, call.id())?;
        Ok((all(tx, &api)?, api))
    })?;
    let own = ratings.iter().find(|rating| rating.owner == call.caller.shown()).map_or(0, stars);
    let path = format!("/apis/{}/ratings", api.id);
    let mut body = Page::of(&call.query).cut(&path, ratings.iter().map(body).collect());
    body["avgRating"] = average(&ratings).into();
    body["userRating"] = own.into();
    Ok(Response::json(200, &body))
}

fn key(call: &Call<'_>, api: &Object) -> String {
    format!("{}:{}", api.id, call.caller.shown())
}

/// Without a rating of the caller the value is 0.
fn get(call: &Call<'_>) -> Result<Response, Problem> {
    let body = call.control.store.read(|tx| {
        let api = apis::by_id(tx, call, call.id())?;
        let found = tx.find(Kind::Rating, &api.organization, &key(call, &api))?;
        let none = || json!({"ratingId": null, "apiId": api.id, "ratedBy": call.caller.shown(), "rating": 0});
        Ok(found.as_ref().map_or_else(none, body))
    })?;
    Ok(Response::json(200, &body))
}

fn put(call: &Call<'_>) -> Result<Response, Problem> {
    let given = schema::body(call.request, MEMBERS, &["rating"])?;
    let stars = given.get("rating").and_then(Value::as_u64).filter(|stars| (1..=RATING_MAX).contains(stars));
    let stars = stars.ok_or_else(|| {
        let text = "Provided rating value does not fall in between min max values";
        Problem::rejected(900_325, "Rating value invalid", text)
    })?;
    let body = call.control.store.change(|tx| {
        let api = apis::by_id(tx, call, call.id())?;
        let key = key(call, &api);
        let rating = match tx.find(Kind::Rating, &api.organization, &key)? {
            Some(mut known) => {
                known.set("rating", stars);
                tx.update(&mut known)?;
                known
            }
            None => {
                let mut added = Object::new(Kind::Rating, &api.organization, "", Map::new()).of(&api.id).keyed(key);
                added.owner = call.caller.shown();
                added.set("rating", stars);
                tx.insert(&added)?;
                added
            }
        };
        keep_average(tx, api)?;
        Ok(body(&rating))
    })?;
    Ok(Response::json(200, &body))
}

fn delete(call: &Call<'_>) -> Result<Response, Problem> {
    call.control.store.change(|tx| {
        let api = apis::by_id(tx, call, call.id())?;
        if let Some(rating) = tx.find(Kind::Rating, &api.organization, &key(call, &api))? {
            tx.delete(&rating)?;
        }
        keep_average(tx, api)
    })?;
    Ok(Response::empty(200))
}

/// Lists show the average, so it is kept with the API.
fn keep_average(tx: &Transaction<'_>, mut api: Object) -> Result<(), Problem> {
    let average = average(&all(tx, &api)?);
    api.set(AVERAGE, average);
    tx.update(&mut api).map(|_| ())
}
