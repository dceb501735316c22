//! One operator, from the sign-in to the block, and the guard's stop.

use serde_json::json;

use crate::{
    browser::{Browser, visit},
    support::server::{Server, Setup},
};

const PERSON: [u8; 4] = [127, 0, 0, 7];
const SCRAPER: [u8; 4] = [127, 0, 0, 66];
/// How many of the replayed requests would have been blocked.
const WOULD_BLOCK: &str = "return Number(document.querySelector('#would-block')?.dataset.total ?? -1);";

#[tokio::test]
async fn from_the_sign_in_to_the_block_and_the_guards_stop() {
    let server = tokio::task::spawn_blocking(start).await.expect("the server starts");
    let app = server.apps;
    visit(app, PERSON, "Firefox", 3);
    visit(app, SCRAPER, "scraper", 60);

    let browser = Browser::open(&server).await;
    by_the_link(&browser, &server).await;
    browser.wait_for_text("#apps", "demo").await;
    browser.press("#apps a").await;
    browser.wait_for_text("h1", "demo").await;
    browser.wait_for_text("#traffic [data-count=allowed]", "63").await;
    browser.wait_for_text("#status", "Log only").await;
    sees_new_traffic(&browser, app).await;

    drafts_and_enforces(&browser).await;
    let statuses = visit(app, SCRAPER, "scraper", 20);
    assert!(statuses.contains(&429), "the limit is in force: {statuses:?}");
    assert_eq!(visit(app, PERSON, "Firefox", 1), [200], "who keeps to it is served");
    browser.wait_for_text("#traffic", "Over the rate").await;
    let blocked =
        "return Number(document.querySelector('[data-count=blocked]').textContent.replace(',', ''));";
    browser.wait_until("blocked requests", blocked, vec![], |value| value.as_f64() > Some(0.0)).await;

    stops_and_resumes(&browser).await;
    browser.go("/audit").await;
    for action in ["Policy changed", "Stop", "Resume"] {
        browser.wait_for_text("main", action).await;
    }
    browser.assert_clean().await;
    browser.close().await;
}

fn start() -> Server {
    Setup::new().unset("guard.secrets").start()
}

/// The link of the first start signs in once.
async fn by_the_link(browser: &Browser, server: &Server) {
    let banner = server.banner();
    let (_, code) = banner.split_once("/sign-in?code=").expect("the first start prints a link");
    let link = format!("/sign-in?code={}", code.split_whitespace().next().unwrap_or_default());
    browser.go(&link).await;
    browser.press("form button").await;
    browser.wait_for_text("h1", "Overview").await;
}

/// The page moves by itself.
async fn sees_new_traffic(browser: &Browser, app: std::net::SocketAddr) {
    visit(app, PERSON, "Firefox", 2);
    browser.wait_for_text("#traffic [data-count=allowed]", "65").await;
}

async fn drafts_and_enforces(browser: &Browser) {
    // A wide limit blocks nobody.
    type_into(browser, "rps", "1000").await;
    type_into(browser, "burst", "1000").await;
    let nobody = browser.wait_until("nobody blocked", WOULD_BLOCK, vec![], |total| *total == json!(0)).await;
    // A narrow one would have. Between the change and its replay nothing is offered.
    type_into(browser, "rps", "0.5").await;
    assert!(
        !browser.has("#preview:not([aria-busy]) #enforce").await,
        "nothing of the draft was replayed yet"
    );
    type_into(browser, "burst", "5").await;
    let narrow = "const busy = document.querySelector('#preview').hasAttribute('aria-busy');
        return busy ? -1 : Number(document.querySelector('#would-block')?.dataset.total ?? -1);";
    let total =
        browser.wait_until("the scraper blocked", narrow, vec![], |total| total.as_f64() > Some(0.0)).await;
    assert_ne!(total, nobody);
    browser.wait_for_text("#preview", "127.0.0.66").await;
    browser.press("#enforce").await;
    browser.wait_for_text("#status", "Enforcing").await;
    browser.wait_for_text("main", "Saved.").await;
}

async fn type_into(browser: &Browser, field: &str, text: &str) {
    let script = "const field = document.getElementById(arguments[0]); field.focus(); field.select();";
    browser.client.execute(script, vec![json!(field)]).await.expect("the field is there");
    browser.find(&format!("#{field}")).await.send_keys(text).await.expect("it takes text");
}

async fn stops_and_resumes(browser: &Browser) {
    browser.go("/guard").await;
    browser.wait_for_text("#state", "Budgets today").await;
    browser.press("details summary").await;
    browser.find("#reason").await.send_keys("card testing").await.expect("a field");
    browser.press("form[action='/guard/stop'] button").await;
    browser.wait_for_text("#state", "card testing").await;
    browser.press("form[action='/guard/resume'] button").await;
    browser.wait_for_text("#switch", "Stop").await;
    assert!(!browser.has("#state .note.bad").await, "nothing is stopped any more");
}
