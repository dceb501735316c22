//! The guard: the fence, budgets of families, shares of identities; stop, resume, and letting people in again.

use std::sync::Arc;

use axum::{
    extract::State,
    response::{IntoResponse, Redirect, Response},
};
use http::StatusCode;
use maud::{Markup, html};
use tidegate_guard::{Guard, Refusal};
use tidegate_protocol::{
    control::{self, Axis, FairnessReset, FamilyState, Phase, Resume, Stop},
    name::Family,
};

use super::{
    chart, events,
    frame::{self, Place},
    visitor::{Posted, Visitor},
    words::{count, percent, span, time},
};
use crate::{admin::Admin, config::Ability};

pub(super) async fn page(State(admin): State<Arc<Admin>>, visitor: Visitor) -> Result<Response, Response> {
    visitor.needs(Ability::Read)?;
    let state = state_of(&admin).await;
    let content = html! {
        div.head {
            h1 { "Guard" }
            p { "What services may spend today, and the switch that stops all of it." }
        }
        div #state .gap { (state_part(state.as_ref())) }
        @if let Ok(state) = &state {
            (switch(&visitor, state))
            (fairness(&admin, &visitor, state))
        }
    };
    Ok(frame::page(&visitor, Place::Guard, "Guard", Some("/events/guard"), &content))
}

pub(super) async fn events(State(admin): State<Arc<Admin>>, visitor: Visitor) -> Result<Response, Response> {
    visitor.needs(Ability::Read)?;
    Ok(events::stream(admin, visitor, |admin, _| async move {
        let state = state_of(&admin).await;
        Some(vec![("state", state_part(state.as_ref()))])
    }))
}

pub(super) async fn stop(State(admin): State<Arc<Admin>>, posted: Posted) -> Result<Response, Response> {
    let reason = posted.fields.text("reason");
    let stop = Stop { reason: (!reason.is_empty()).then(|| reason.to_owned()) };
    change(&admin, &posted.visitor, async |guard, from| guard.operator().stop(stop, from).await.map(drop))
        .await
}

pub(super) async fn resume(State(admin): State<Arc<Admin>>, posted: Posted) -> Result<Response, Response> {
    let families = match posted.fields.text("family") {
        "" => None,
        name => {
            let Ok(family) = Family::parse(name) else { return Err(no_family(&posted.visitor)) };
            Some(vec![family])
        }
    };
    let resume = Resume { families };
    let resumed = async |guard: Guard, from: &str| guard.operator().resume(resume, from).await.map(drop);
    change(&admin, &posted.visitor, resumed).await
}

pub(super) async fn reset(State(admin): State<Arc<Admin>>, posted: Posted) -> Result<Response, Response> {
    let Ok(family) = Family::parse(posted.fields.text("family")) else {
        return Err(no_family(&posted.visitor));
    };
    let axis = Axis::named(posted.fields.text("axis"));
    let reset = FairnessReset { family, axis, identity: None };
    let done = async |guard: Guard, from: &str| guard.operator().reset_fairness(reset, from).await.map(drop);
    change(&admin, &posted.visitor, done).await
}

/// Does what an operator may, and shows the page anew.
async fn change<F>(admin: &Admin, visitor: &Visitor, change: F) -> Result<Response, Response>
where
    F: AsyncFnOnce(Guard, &str) -> Result<(), Refusal>,
{
    visitor.needs(Ability::Operator)?;
    let done = match admin.service.guard() {
        Some(guard) => change(guard, &visitor.signature()).await,
        None => Err(Refusal::Unavailable),
    };
    done.map(|()| Redirect::to("/guard").into_response()).map_err(|refusal| {
        frame::problem(Some(visitor), StatusCode::SERVICE_UNAVAILABLE, "Not done", &refusal.to_string())
    })
}

/// How everything stands, or why nobody knows.
async fn state_of(admin: &Admin) -> Result<control::State, String> {
    let Some(guard) = admin.service.guard() else {
        return Err(
            "The guard's configuration has faults: every RPC is answered 503. `tidegate check` names them."
                .into(),
        );
    };
    guard.operator().state().await.map_err(|refusal| refusal.to_string())
}

fn state_part(state: Result<&control::State, &String>) -> Markup {
    let state = match state {
        Ok(state) => state,
        Err(why) => return html! { p.note.bad role="alert" { (why) } },
    };
    html! {
        @if state.fence.stopped {
            div.note.bad role="status" {
                strong { "Stopped." } " No RPC executes a step, on any instance"
                @if let Some(since_ms) = state.fence.since_ms { ", since " (time(since_ms)) " UTC" }
                @if let Some(reason) = &state.fence.reason { ": " (reason) } "."
            }
        }
        section.card aria-labelledby="families" {
            div.head {
                h2 #families { "Budgets today" }
                span.muted.small { "Begin anew in " (span(state.next_reset_ms - state.next_reset_ms % 60_000)) }
            }
            @if state.families.is_empty() {
                p.empty { strong { "No families" } "Give some a budget: guard.family_budgets." }
            } @else {
                table.stack {
                    thead { tr {
                        th { "Family" } th { "State" } th { "Spent" }
                        th.number { "Commands spent" } th.number { "Budget" } th.number { "Left for everybody" }
                        th.number { "Kept for known-good" }
                    } }
                    tbody { @for (name, family) in &state.families { (family_row(name.as_str(), family, state.fence.stopped)) } }
                }
            }
        }
    }
}

/// As the warning has it. That is given once a day, so after a resume its mark says nothing about what is left.
fn is_nearly_spent(family: &FamilyState) -> bool {
    u128::from(family.used) * 5 >= u128::from(family.budget) * 4
}

fn no_family(visitor: &Visitor) -> Response {
    let text = "Choose the family whose shares or budget begin anew.";
    frame::problem(Some(visitor), StatusCode::UNPROCESSABLE_ENTITY, "Not done", text)
}

fn family_row(name: &str, family: &FamilyState, fenced: bool) -> Markup {
    let (class, word) = match family.state {
        _ if fenced => ("off", "Held back"),
        Phase::Open if is_nearly_spent(family) => ("warn", "Nearly spent"),
        Phase::Open => ("good", "Open"),
        Phase::Reserve => ("warn", "Known-good only"),
        Phase::Stopped => ("bad", "Stopped"),
    };
    let shade = match family.state {
        Phase::Stopped => "bad",
        _ if is_nearly_spent(family) => "warn",
        _ => "",
    };
    let spent = percent(family.used, family.budget);
    let text = format!("{spent} spent");
    html! {
        tr {
            td { strong { (name) } }
            td { span class={ "badge " (class) } { (word) } }
            td.full { (chart::meter(family.used, family.budget, family.reserve_remaining, shade, &text)) }
            td.number data-name="Spent" { (count(family.used)) " " span.muted.small { "(" (spent) ")" } }
            td.number data-name="Budget" { (count(family.budget)) }
            td.number data-name="Left" { (count(family.open_remaining)) }
            td.number data-name="Kept" { (count(family.reserve_remaining)) }
        }
    }
}

/// Stop, or resume.
fn switch(visitor: &Visitor, state: &control::State) -> Markup {
    let may = visitor.caller.may(Ability::Operator);
    let resumable = state.fence.stopped || state.families.values().any(|family| family.state != Phase::Open);
    html! {
        section.card aria-labelledby="switch" {
            div.gap {
                h2 #switch { @if state.fence.stopped { "Resume" } @else { "Stop" } }
                p.muted {
                    @if state.fence.stopped { "Takes the fence down. Budgets begin anew; shares of identities stay as they are." }
                    @else { "Once stopped, no RPC executes a step on any instance until somebody resumes. Data is kept, and the apps behind the proxy go on." }
                }
            }
            @if !may { p.hint { "Stopping and resuming need a token with the ability operator." } }
            div.row {
                @if resumable {
                    form method="post" action="/guard/resume" {
                        (frame::csrf(visitor))
                        button.primary disabled[!may] { "Resume everything" }
                    }
                }
                @if !state.fence.stopped {
                    details {
                        summary { "Stop everything…" }
                        form.gap method="post" action="/guard/stop" {
                            (frame::csrf(visitor))
                            div.field {
                                label for="reason" { "Reason" }
                                input #reason type="text" name="reason" maxlength="200" placeholder="for the audit log";
                            }
                            div { button.danger disabled[!may] { "Stop everything now" } }
                        }
                    }
                }
            }
        }
    }
}

fn fairness(admin: &Admin, visitor: &Visitor, state: &control::State) -> Markup {
    let families = admin.families.read();
    let may = visitor.caller.may(Ability::Operator);
    html! {
        section.card aria-labelledby="fairness" {
            div.gap {
                h2 #fairness { "Fairness" }
                p.muted { "The most commands that one identity may spend in a day, so that nobody takes the whole budget." }
            }
            div.scroll tabindex="0" role="group" aria-labelledby="fairness" {
                table {
                    thead { tr { th { "Family" } @for axis in Axis::ALL { th.number { (axis.as_str()) } } } }
                    tbody {
                        @for (name, rules) in families.iter() {
                            tr {
                                td { strong { (name) } }
                                @for axis in Axis::ALL { td.number { (count(rules.allowance(axis))) } }
                            }
                        }
                    }
                }
            }
            details {
                summary { "Let people in again…" }
                form.gap method="post" action="/guard/fairness" {
                    (frame::csrf(visitor))
                    p.hint { "Clears what identities have spent of a family today. For one address or account: tidegate control reset." }
                    div.fields {
                        div.field {
                            label for="family" { "Family" }
                            select #family name="family" {
                                @for name in state.families.keys() { option value=(name.as_str()) { (name.as_str()) } }
                            }
                        }
                        div.field {
                            label for="axis" { "Whose" }
                            select #axis name="axis" {
                                option value="" { "everybody" }
                                @for axis in Axis::ALL { option value=(axis.as_str()) { "every " (axis.as_str()) } }
                            }
                        }
                    }
                    div { button disabled[!may] { "Clear" } }
                }
            }
        }
    }
}
