/** What can be a secret, a pepper or an operator's token: long enough to be one. */

/** The fewest characters of a secret. */
export const SECRET_CHARS_MIN = 32;

/** Which rule `text` breaks as a secret, repeating none of it; `undefined` if it can be one. */
export function secretFault(text: string | undefined): string | undefined {
  if (text === undefined || text === "") return "is missing";
  if (text.includes("\u{feff}")) return "contains a byte order mark; save the file without one";
  if (/^\p{White_Space}|\p{White_Space}$/u.test(text)) {
    return "begins or ends with white space, which is not trimmed";
  }
  if (/\p{Cc}/u.test(text)) return "contains a control character";
  const chars = [...text];
  if (chars.length < SECRET_CHARS_MIN) {
    return `has ${chars.length} characters; at least ${SECRET_CHARS_MIN} are needed`;
  }
  const letters = text.toLowerCase().replaceAll(/[^a-z0-9]/g, "");
  if (new Set(chars).size < DIFFERENT_MIN || PLACEHOLDERS.some((word) => letters.includes(word))) {
    return "looks like a placeholder; make one with `tidegate keygen`";
  }
  return undefined;
}

/** 32 random hexadecimal digits have 14 different ones on average, and fewer than 6 once in 10^12. */
const DIFFERENT_MIN = 6;

/** Eight letters or more each, so that no random secret holds one by chance. */
const PLACEHOLDERS = [
  "changeme",
  "changethis",
  "replaceme",
  "replacethis",
  "placeholder",
  "yoursecret",
  "insertsecret",
];
