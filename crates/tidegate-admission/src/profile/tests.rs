use super::Profile;

#[test]
fn the_default_profile_is_valid() {
    assert_eq!(Profile::parse(Profile::DEFAULT_TEXT), Ok(Profile::default()));
}
