//! Comments on APIs and MCP servers, with replies, of publishers and developers.

use serde_json::{Map, Value, json};

use crate::clock;
use crate::devportal::apis;
use crate::http::Response;
use crate::page::Page;
use crate::problem::Problem;
use crate::publisher::api;
use crate::route::{Api, Call, Registration};
use crate::schema::{self, Is, Members};
use crate::store::{Filter, Kind, Object, Order, Transaction};

/// Of both portals: they differ in which APIs a caller may see.
pub(crate) const HANDLERS: &[Registration] = &[
    ("GET", "/apis/{apiId}/comments", list),
    ("POST", "/apis/{apiId}/comments", create),
    ("GET", "/apis/{apiId}/comments/{commentId}", get),
    ("PATCH", "/apis/{apiId}/comments/{commentId}", update),
    ("DELETE", "/apis/{apiId}/comments/{commentId}", delete),
    ("GET", "/apis/{apiId}/comments/{commentId}/replies", replies),
    ("GET", "/mcp-servers/{mcpServerId}/comments", list),
    ("POST", "/mcp-servers/{mcpServerId}/comments", create),
    ("GET", "/mcp-servers/{mcpServerId}/comments/{commentId}", get),
    ("PATCH", "/mcp-servers/{mcpServerId}/comments/{commentId}", update),
    ("DELETE", "/mcp-servers/{mcpServerId}/comments/{commentId}", delete),
    ("GET", "/mcp-servers/{mcpServerId}/comments/{commentId}/replies", replies),
];

const MEMBERS: Members = &[("content", Is::Text), ("category", Is::Text)];

/// Characters of one comment.
const CONTENT_CHARS_MAX: usize = 512;

/// The API of a path, as the portal of the caller shows it.
fn api_of(tx: &Transaction<'_>, call: &Call<'_>) -> Result<Object, Problem> {
    match call.api {
        Api::Devportal => apis::by_id(tx, call, call.id()),
        _ => api::of_call(tx, call),
    }
}

/// Comments on an API, or replies to a comment, oldest first.
fn of(api: &Object, replied: &str) -> Filter {
    let filter = Filter::new(Kind::Comment, &api.organization).parent(&api.id);
    filter.target(replied).sorted(Order::Created { descending: false })
}

fn body(call: &Call<'_>, comment: &Object) -> Value {
    let member = |name: &str| comment.document.get(name).cloned().unwrap_or_default();
    let is_changed = comment.updated_ms != comment.created_ms;
    let commenter = call
        .query
        .flag("includeCommenterInfo")
        .then(|| json!({"firstName": null, "lastName": null, "fullName": comment.owner}));
    json!({
        "id": comment.id, "content": member("content"), "createdTime": clock::shown(comment.created_ms),
        "createdBy": comment.owner, "updatedTime": is_changed.then(|| clock::shown(comment.updated_ms)),
        "category": member("category"),
        "parentCommentId": Some(&comment.target).filter(|id| !id.is_empty()),
        "entryPoint": member("entryPoint"), "commenterInfo": commenter,
        "replies": {"count": 0, "list": [], "pagination": {}},
    })
}

/// A comment with a page of its replies.
fn with_replies(tx: &Transaction<'_>, call: &Call<'_>, comment: &Object) -> Result<Value, Problem> {
    let mut shown = body(call, comment);
    if comment.target.is_empty() {
        let page = Page {
            offset: call.query.number("replyOffset").unwrap_or_default(),
            limit: Page::of(&crate::http::Parameters::default())
                .limit
                .min(call.query.number("replyLimit").unwrap_or(usize::MAX)),
        };
        shown["replies"] = listed(tx, call, comment, page)?;
    }
    Ok(shown)
}

fn listed(tx: &Transaction<'_>, call: &Call<'_>, comment: &Object, page: Page) -> Result<Value, Problem> {
    let filter = Filter::new(Kind::Comment, &comment.organization).parent(&comment.parent).target(&comment.id);
    let total = tx.count(&filter)?;
    let found = tx.list(&filter.page(page.offset, page.limit))?;
    let path = format!("/apis/{}/comments/{}/replies", comment.parent, comment.id);
    Ok(page.body(&path, &[], found.iter().map(|reply| body(call, reply)).collect(), total))
}

fn list(call: &Call<'_>) -> Result<Response, Problem> {
    let page = Page::of(&call.query);
    let body = call.control.store.read(|tx| {
        let filter = of(&api_of(tx, call)?, "").sorted(Order::Created { descending: true });
        let total = tx.count(&filter)?;
        let found = tx.list(&filter.page(page.offset, page.limit))?;
        let shown = found.iter().map(|comment| with_replies(tx, call, comment)).collect::<Result<Vec<_>, _>>()?;
        Ok(page.body(&format!("/apis/{}/comments", call.id()), &[], shown, total))
    })?;
    Ok(Response::json(200, &body))
}

fn check_length(given: &Map<String, Value>) -> Result<(), Problem> {
    match api::text(given, "content").chars().count() {
        length if length > CONTENT_CHARS_MAX => {
            let text = "Comment length exceeds allowed maximum number of characters";
            Err(Problem::rejected(901_103, "Comment length exceeds max limit", text))
        }
        _ => Ok(()),
    }
}

fn create(call: &Call<'_>) -> Result<Response, Problem> {
    let given = schema::body(call.request, MEMBERS, &["content"])?;
    check_length(&given)?;
    let (id, body) = call.control.store.change(|tx| {
        let api = api_of(tx, call)?;
        let mut document = given;
        if document.get("category").is_none_or(Value::is_null) {
            document.insert("category".into(), "general".into());
        }
        let portal = if call.api == Api::Devportal { "devPortal" } else { "publisher" };
        document.insert("entryPoint".into(), portal.into());
        let mut comment = Object::new(Kind::Comment, &api.organization, "", document).of(&api.id);
        comment.owner = call.caller.shown();
        if let Some(replied) = call.query.get("replyTo") {
            let replied = by_id(tx, &api, replied)?;
            if !replied.target.is_empty() {
                return Err(Problem::bad_request("A reply cannot be replied to"));
            }
            comment.target = replied.id;
        }
        tx.insert(&comment)?;
        let shown = body(call, &comment);
        Ok((comment.id, shown))
    })?;
    Ok(Response::json(201, &body).with("Location", format!("/apis/{}/comments/{id}", call.id())))
}

fn by_id(tx: &Transaction<'_>, api: &Object, id: &str) -> Result<Object, Problem> {
    let found = tx.get(Kind::Comment, &api.organization, id)?.filter(|comment| comment.parent == api.id);
    found.ok_or_else(|| Problem::new(404, 901_102, "Comment not found", "Couldn't retrieve comment"))
}

fn of_call(tx: &Transaction<'_>, call: &Call<'_>) -> Result<Object, Problem> {
    by_id(tx, &api_of(tx, call)?, call.parameter("commentId"))
}

/// A comment that the caller may change: it is the caller's, or the caller is an administrator.
fn own(tx: &Transaction<'_>, call: &Call<'_>) -> Result<Object, Problem> {
    let comment = of_call(tx, call)?;
    match comment.owner == call.caller.shown() || call.caller.is_admin() {
        true => Ok(comment),
        false => {
            let text = "This user is not a comment moderator";
            Err(Problem::new(403, 901_100, "Comment moderator permission needed", text))
        }
    }
}

fn get(call: &Call<'_>) -> Result<Response, Problem> {
    let body = call.control.store.read(|tx| with_replies(tx, call, &of_call(tx, call)?))?;
    Ok(Response::json(200, &body))
}

fn replies(call: &Call<'_>) -> Result<Response, Problem> {
    let body = call.control.store.read(|tx| listed(tx, call, &of_call(tx, call)?, Page::of(&call.query)))?;
    Ok(Response::json(200, &body))
}

fn update(call: &Call<'_>) -> Result<Response, Problem> {
    let given = schema::body(call.request, MEMBERS, &[])?;
    check_length(&given)?;
    let body = call.control.store.change(|tx| {
        let mut comment = own(tx, call)?;
        for name in ["content", "category"] {
            if let Some(value) = given.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty()) {
                comment.set(name, value);
            }
        }
        tx.update(&mut comment)?;
        with_replies(tx, call, &comment)
    })?;
    Ok(Response::json(200, &body))
}

/// Removes a comment with its replies.
fn delete(call: &Call<'_>) -> Result<Response, Problem> {
    call.control.store.change(|tx| {
        let comment = own(tx, call)?;
        for reply in tx.list(&Filter::new(Kind::Comment, &comment.organization).target(&comment.id))? {
            tx.delete(&reply)?;
        }
        tx.delete(&comment)
    })?;
    Ok(Response::empty(200))
}
