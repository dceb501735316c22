/** A full ISO 8601 timestamp with a zone, such as `2026-02-28T00:00:00Z`, in ms since the epoch;
 * `undefined` for anything less or
 * before 1970, since half a date would end something at another hour than was meant. */
export function timestampMs(text: string): number | undefined {
  const parts = FORM.exec(text);
  if (parts === null) return undefined;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = parts.slice(1, 7).map(Number);
  const [offsetHours = 0, offsetMinutes = 0] = parts.slice(8, 10).map((part) => Number(part ?? 0));
  if (hour > 23 || minute > 59 || second > 59 || offsetHours > 23 || offsetMinutes > 59) return undefined;
  const date = new Date(Date.UTC(year, month - 1, day));
  // `Date` takes the 31st of April for the 1st of May.
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return undefined;
  const ms = Date.parse(text);
  return ms >= 0 ? ms : undefined;
}

const FORM = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.\d{1,3})?(Z|[+-](\d\d):(\d\d))$/;
