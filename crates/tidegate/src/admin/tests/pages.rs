use http::{Method, StatusCode, header};

use super::{Bench, csrf_of};

const GET: Method = Method::GET;
const POST: Method = Method::POST;
const SETTINGS: &str = "rps=0.5&burst=2&ipv6_prefix=64&deny_cidrs=&deny_user_agents=&allow_cidrs=&routes=";

#[tokio::test]
async fn pages_are_for_who_is_signed_in() {
    let bench = Bench::new().await;
    let events = bench.page(GET, "/events/overview", "", "").await;
    assert!(events.text.starts_with("event: over"), "the page is loaded anew: {}", events.text);
    for path in ["/", "/apps/shop", "/guard", "/audit"] {
        let reply = bench.page(GET, path, "tidegate_session=guess", "").await;
        assert_eq!(
            (reply.status, reply.header(header::LOCATION)),
            (StatusCode::SEE_OTHER, "/sign-in"),
            "{path}"
        );
    }
    let wrong = bench.page(POST, "/sign-in", "", "token=guess").await;
    assert_eq!(wrong.status, StatusCode::UNAUTHORIZED);
    assert_eq!(wrong.header(header::SET_COOKIE), "");
    let right = bench.page(POST, "/sign-in", "", &format!("token={}", super::token("everything"))).await;
    let cookie = right.header(header::SET_COOKIE);
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    assert!(!cookie.contains(&super::token("everything")), "the token itself stays out of the browser");

    let (cookie, csrf) = bench.sign_in("everything").await;
    for path in ["/", "/apps/shop", "/guard", "/audit"] {
        let reply = bench.page(GET, path, &cookie, "").await;
        assert_eq!(reply.status, StatusCode::OK, "{path}");
        let policy = reply.header(header::CONTENT_SECURITY_POLICY);
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(reply.header(header::CACHE_CONTROL), "no-store", "{path}");
        for inline in [" style=", "<style", " onclick=", "javascript:", "src=\"http", "href=\"http"] {
            assert!(!reply.text.contains(inline), "{path} has {inline}");
        }
    }
    assert_eq!(bench.page(GET, "/apps/nobody", &cookie, "").await.status, StatusCode::NOT_FOUND);
    let out = bench.page(POST, "/sign-out", &cookie, &format!("csrf={csrf}")).await;
    assert!(out.header(header::SET_COOKIE).contains("Max-Age=0"));
    assert_eq!(bench.page(GET, "/", &cookie, "").await.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn a_code_signs_in_once() {
    let bench = Bench::new().await;
    let token = crate::admin::access::hash(super::token("everything").as_bytes());
    let code = bench.admin.sessions.make_code(token, tokio::time::Instant::now()).unwrap();
    let form = format!("code={}", code.expose());
    let looked = bench.page(GET, &format!("/sign-in?{form}"), "", "").await;
    assert_eq!(
        (looked.status, looked.header(header::SET_COOKIE)),
        (StatusCode::OK, ""),
        "looking uses nothing up"
    );
    assert_eq!(bench.page(POST, "/sign-in", "", &form).await.status, StatusCode::SEE_OTHER);
    assert_eq!(bench.page(POST, "/sign-in", "", &form).await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_revoked_token_is_out_of_the_dashboard_at_once() {
    let bench = Bench::new().await;
    let body = r#"{"name": "temporary", "abilities": ["read"]}"#;
    let made = bench.call("everything", POST, "/tokens", body).await.json();
    let form = format!("token={}", made["token"].as_str().unwrap());
    let reply = bench.page(POST, "/sign-in", "", &form).await;
    let cookie = reply.header(header::SET_COOKIE).split(';').next().unwrap().to_owned();
    assert_eq!(bench.page(GET, "/", &cookie, "").await.status, StatusCode::OK);
    bench.call("everything", Method::DELETE, "/tokens/temporary", "").await;
    assert_eq!(bench.page(GET, "/", &cookie, "").await.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn forms_of_others_change_nothing() {
    let bench = Bench::new().await;
    let (cookie, csrf) = bench.sign_in("everything").await;
    let (_, other) = bench.sign_in("everything").await;
    for token in ["", "csrf=", "csrf=guess", &format!("csrf={other}")] {
        let form = format!("{token}&mode=off&{SETTINGS}");
        let reply = bench.page(POST, "/apps/shop/policy", &cookie, &form).await;
        assert_eq!(reply.status, StatusCode::FORBIDDEN, "{token}");
    }
    assert_eq!(bench.call("read", GET, "/apps/shop/abuse", "").await.json()["version"], 0);
    let form = format!("csrf={csrf}&mode=off&{SETTINGS}");
    assert_eq!(bench.page(POST, "/apps/shop/policy", &cookie, &form).await.status, StatusCode::SEE_OTHER);
    assert_eq!(bench.call("read", GET, "/apps/shop/abuse", "").await.json()["version"], 1);
}

#[tokio::test]
async fn enforcing_comes_after_the_replay_of_the_same_settings() {
    let bench = Bench::new().await;
    bench.traffic("192.0.2.7", 100);
    let (cookie, csrf) = bench.sign_in("everything").await;
    let page = bench.page(GET, "/apps/shop", &cookie, "").await;
    assert!(!page.text.contains("Enforce these settings"), "not before the replay");
    let form = |settings: &str, mode: &str| format!("csrf={csrf}&version=0&mode={mode}&{settings}");
    let enforce = async |settings: &str| {
        bench.page(POST, "/apps/shop/policy", &cookie, &form(settings, "enforce")).await.status
    };
    assert_eq!(enforce(SETTINGS).await, StatusCode::CONFLICT);
    let preview = bench.page(POST, "/apps/shop/preview", &cookie, &form(SETTINGS, "")).await;
    assert!(
        preview.text.contains("Enforce these settings") && preview.text.contains("192.0.2.7"),
        "{}",
        preview.text
    );
    let stricter = SETTINGS.replace("burst=2", "burst=1");
    assert_eq!(enforce(&stricter).await, StatusCode::CONFLICT, "other settings were replayed");
    assert_eq!(enforce(SETTINGS).await, StatusCode::SEE_OTHER);
    let abuse = bench.call("read", GET, "/apps/shop/abuse", "").await.json();
    assert_eq!((&abuse["policy"]["mode"], &abuse["policy"]["rps"]), (&"enforce".into(), &0.5.into()));
    let preview = bench.page(POST, "/apps/shop/preview", &cookie, &form(SETTINGS, "")).await;
    assert!(preview.text.contains("in force") && !preview.text.contains("Enforce these"), "{}", preview.text);
    bench.traffic("192.0.2.7", 20);
    let page = bench.page(GET, "/apps/shop", &cookie, "").await;
    assert!(page.text.contains("Over the rate") && page.text.contains("Enforcing"), "{}", page.text);

    let again = bench.page(POST, "/apps/shop/policy", &cookie, &form(SETTINGS, "log_only")).await;
    assert_eq!(again.status, StatusCode::PRECONDITION_FAILED, "version 0 is not the one any more");
    assert!(again.text.contains("version 1"), "{}", again.text);
    let faulty = form(&SETTINGS.replace("deny_cidrs=", "deny_cidrs=nowhere"), "log_only");
    let faulty = bench.page(POST, "/apps/shop/policy", &cookie, &faulty).await;
    assert_eq!(faulty.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(faulty.text.contains("deny_cidrs[0]") && faulty.text.contains("nowhere"), "{}", faulty.text);
}

#[tokio::test]
async fn a_reader_sees_no_client_and_changes_nothing() {
    let bench = Bench::new().await;
    bench.traffic("192.0.2.7", 100);
    let (cookie, csrf) = bench.sign_in("readwrite").await;
    let form = format!("csrf={csrf}&mode=enforce&{SETTINGS}");
    let preview = bench.page(POST, "/apps/shop/preview", &cookie, &form).await;
    assert!(
        preview.text.contains("read:sensitive") && !preview.text.contains("192.0.2.7"),
        "{}",
        preview.text
    );
    let (cookie, _) = bench.sign_in("read").await;
    let page = bench.page(GET, "/apps/shop", &cookie, "").await;
    let csrf = csrf_of(&page.text);
    let form = format!("csrf={csrf}&mode=off&{SETTINGS}");
    let saved = bench.page(POST, "/apps/shop/policy", &cookie, &form).await;
    assert_eq!(saved.status, StatusCode::FORBIDDEN);
    assert!(saved.text.contains("ability write"), "{}", saved.text);
    assert_eq!(
        bench.page(POST, "/guard/stop", &cookie, &format!("csrf={csrf}")).await.status,
        StatusCode::FORBIDDEN
    );
}
