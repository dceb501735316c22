/** One identity for a host however its address is written, and the networks that it belongs to. */

/** The canonical source of a caller whose address is missing or can't be read. */
export const UNKNOWN = "unknown";

/** A network that an address belongs to, as it is hashed. */
export interface Network {
  /** The bits of its prefix: 24 for IPv4, 56 or 48 for IPv6. */
  readonly prefix: 24 | 48 | 56;
  /** The canonical text: `192.0.2.0/24`, `2001:db8::/48`. */
  readonly text: string;
}

/** The canonical source that is charged, `unknown` where there is no readable address: one IPv4 address, or
 * one IPv6 /64, which one host can have to itself. Nothing but an address is read: no port, brackets, zone,
 * prefix, blanks or leading zeros. */
export function sourceOf(address: string | null | undefined): string {
  const parsed = parse(address);
  if (parsed === undefined) return UNKNOWN;
  return parsed.version === 4 ? `${parsed.bytes.join(".")}/32` : ipv6Network(parsed.groups, 64);
}

/** The networks around an address, smallest first: IPv4 /24; IPv6 /56 and /48. */
export function networksOf(address: string | null | undefined): readonly Network[] {
  const parsed = parse(address);
  if (parsed === undefined) return [];
  if (parsed.version === 4) return [{ prefix: 24, text: `${parsed.bytes.slice(0, 3).join(".")}.0/24` }];
  return ([56, 48] as const).map((prefix) => ({ prefix, text: ipv6Network(parsed.groups, prefix) }));
}

type Address = { version: 4; bytes: number[] } | { version: 6; groups: number[] };

function parse(text: string | null | undefined): Address | undefined {
  if (typeof text !== "string" || text.length > LONGEST) return undefined;
  const bytes = parseIpv4(text);
  if (bytes !== undefined) return { version: 4, bytes };
  const groups = parseIpv6(text);
  if (groups === undefined) return undefined;
  const carried = carriedIpv4(groups);
  return carried === undefined ? { version: 6, groups } : { version: 4, bytes: carried };
}

function parseIpv4(text: string): number[] | undefined {
  const parts = text.split(".");
  if (parts.length !== 4 || !parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part))) return undefined;
  const bytes = parts.map(Number);
  return bytes.every((byte) => byte <= 255) ? bytes : undefined;
}

function parseIpv6(text: string): number[] | undefined {
  const halves = text.split("::");
  if (halves.length > 2) return undefined;
  const [head, tail] = halves.map((half, index) => parseGroups(half, index === halves.length - 1));
  if (head === undefined) return undefined;
  if (halves.length === 1) return head.length === 8 ? head : undefined;
  // The two colons stand for at least one group.
  if (tail === undefined || head.length + tail.length > 7) return undefined;
  return [...head, ...new Array<number>(8 - head.length - tail.length).fill(0), ...tail];
}

function parseGroups(text: string, isLast: boolean): number[] | undefined {
  if (text === "") return [];
  const parts = text.split(":");
  const groups: number[] = [];
  for (const [index, part] of parts.entries()) {
    const ipv4 = isLast && index === parts.length - 1 ? parseIpv4(part) : undefined;
    if (ipv4 !== undefined) groups.push(...pairs(ipv4));
    else if (/^[0-9a-f]{1,4}$/i.test(part)) groups.push(Number.parseInt(part, 16));
    else return undefined;
  }
  return groups;
}

const pairs = ([a = 0, b = 0, c = 0, d = 0]: number[]): number[] => [a * 256 + b, c * 256 + d];

/** The IPv4 address in an IPv4-mapped (`::ffff:0:0/96`) or a NAT64 (`64:ff9b::/96`) one. Other addresses that
 * merely end in four bytes, `::1` among them, are what they are. */
function carriedIpv4(groups: number[]): number[] | undefined {
  const prefix = groups.slice(0, 6).join();
  if (prefix !== "0,0,0,0,0,65535" && prefix !== `${0x64},${0xff9b},0,0,0,0`) return undefined;
  return groups.slice(6).flatMap((group) => [group >> 8, group & 255]);
}

function ipv6Network(groups: number[], prefix: number): string {
  const masked = groups.map((group, index) => {
    const bits = Math.min(16, Math.max(0, prefix - index * 16));
    return group & (0xffff << (16 - bits)) & 0xffff;
  });
  return `${ipv6Text(masked)}/${prefix}`;
}

/** The text of RFC 5952: the longest run of two or more zero groups, the first of equals, is left out. */
function ipv6Text(groups: number[]): string {
  let [start, length] = [-1, 1];
  for (let at = 0; at < 8; at++) {
    let end = at;
    while (end < 8 && groups[end] === 0) end++;
    if (end - at > length) [start, length] = [at, end - at];
    at = Math.max(at, end);
  }
  const hex = groups.map((group) => group.toString(16));
  if (start < 0) return hex.join(":");
  return `${hex.slice(0, start).join(":")}::${hex.slice(start + length).join(":")}`;
}

/** The longest text of an address: eight groups of IPv6, the last two written as IPv4. */
const LONGEST = 45;
