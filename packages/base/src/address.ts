/** The bytes of an IP address: 4 of them for IPv4, 16 for IPv6. */
type AddressBytes = readonly number[]

/**
 * IPv4 networks that are not part of the public internet: this machine, private and shared networks,
 * link-local addresses (cloud metadata among them), documentation, benchmarks, multicast and reserved ones
 * (IANA special-purpose registry, RFC 6890).
 */
const PRIVATE_IPV4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
]

/**
 * The exceptions within 2000::/3, the only part of IPv6 that is routed (RFC 4291 §2.4): protocol
 * assignments such as Teredo, documentation, and 6to4, whose addresses contain an IPv4 address.
 */
const PRIVATE_IPV6 = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20']

/**
 * True if an address belongs to this machine, to a private network or to another range that is not part of
 * the public internet, in any spelling: IPv4 in decimal, octal or hexadecimal parts (`0x7f.1`,
 * `2130706433`), IPv6 with a zone, in brackets, or with an IPv4 address inside. Also true for text that is
 * no address, so that nothing unknown counts as public.
 */
export function isPrivateAddress(address: string): boolean {
  const readings = readAddress(address)
  return readings.length === 0 || readings.some(isPrivate)
}

function isPrivate(bytes: AddressBytes): boolean {
  if (bytes.length === 4) return PRIVATE_IPV4.some((network) => isWithin(bytes, network))
  const ipv4 = mappedIpv4(bytes)
  if (ipv4) return isPrivate(ipv4)
  // Everything outside 2000::/3 is loopback, local, multicast, a translation of IPv4 (64:ff9b::/96,
  // 64:ff9b:1::/48, ::a.b.c.d) or unassigned.
  return !isWithin(bytes, '2000::/3') || PRIVATE_IPV6.some((network) => isWithin(bytes, network))
}

/**
 * True if an address lies in a network such as `10.0.0.0/8` or `fd00::/8`; a network without a length is a
 * single address. An IPv4 address written as IPv6 (`::ffff:10.0.0.1`) counts as IPv4. False if one of the
 * texts cannot be read.
 */
export function isInNetwork(address: string, network: string): boolean {
  return readAddress(address).some((bytes) => isWithin(mappedIpv4(bytes) ?? bytes, network))
}

function isWithin(bytes: AddressBytes, network: string): boolean {
  const slash = network.lastIndexOf('/')
  const [base] = readAddress(slash < 0 ? network : network.slice(0, slash))
  const length = slash < 0 ? '128' : network.slice(slash + 1)
  if (!base || base.length !== bytes.length || !/^\d{1,3}$/.test(length)) return false
  const bits = Math.min(Number(length), bytes.length * 8)
  return bytes.every((byte, index) => {
    const used = Math.min(Math.max(bits - index * 8, 0), 8)
    return (byte ^ base[index]!) >> (8 - used) === 0
  })
}

/**
 * Reads an address. The list is empty if the text is not an address. It has two entries if parts of an IPv4
 * address begin with 0, which some programs read as octal and others as decimal.
 */
function readAddress(text: string): readonly AddressBytes[] {
  const bare = text.trim().replace(/^\[([^\]]*)\]$/, '$1')
  if (bare.includes(':')) {
    const bytes = readIpv6(bare.split('%')[0]!)
    return bytes ? [bytes] : []
  }
  const readings = [readIpv4(bare, 8), readIpv4(bare, 10)].filter((bytes) => bytes !== undefined)
  return readings[0]?.join() === readings[1]?.join() ? readings.slice(0, 1) : readings
}

/** Reads one to four parts; the last part fills all bytes that are left, as in `inet_aton`: `127.1` is 127.0.0.1. */
function readIpv4(text: string, zeroBase: 8 | 10): AddressBytes | undefined {
  const parts = text.replace(/\.$/, '').split('.')
  const numbers = parts.map((part) => {
    if (/^0x[\da-f]*$/i.test(part)) return Number.parseInt(`0${part.slice(2)}`, 16)
    const isOctal = zeroBase === 8 && /^0\d/.test(part)
    return (isOctal ? /^[0-7]{1,14}$/ : /^\d{1,14}$/).test(part)
      ? Number.parseInt(part, isOctal ? 8 : 10)
      : NaN
  })
  const last = numbers.pop()!
  const rest = 4 - numbers.length
  if (rest < 1 || !(last < 256 ** rest) || !numbers.every((byte) => byte < 256)) return undefined
  const tail = Array.from(
    { length: rest },
    (_, i) => Math.floor(last / 256 ** (rest - 1 - i)) % 256,
  )
  return [...numbers, ...tail]
}

function readIpv6(text: string): AddressBytes | undefined {
  const halves = text.split('::')
  if (halves.length > 2) return undefined
  const [head, tail] = halves.map(readGroups)
  if (!head || (halves.length === 2 && !tail)) return undefined
  if (!tail) return head.length === 16 ? head : undefined
  const gap = 16 - head.length - tail.length
  return gap < 2 ? undefined : [...head, ...Array.from({ length: gap }, () => 0), ...tail]
}

/** Reads groups of hexadecimal digits; the last one may be an IPv4 address. */
function readGroups(text: string): AddressBytes | undefined {
  const groups = text === '' ? [] : text.split(':')
  const bytes: number[] = []
  for (const [index, group] of groups.entries()) {
    if (index === groups.length - 1 && /^\d{1,3}(?:\.\d{1,3}){3}$/.test(group)) {
      const ipv4 = readIpv4(group, 10)
      if (!ipv4) return undefined
      bytes.push(...ipv4)
    } else if (/^[\da-f]{1,4}$/i.test(group)) {
      const value = Number.parseInt(group, 16)
      bytes.push(value >> 8, value & 255)
    } else return undefined
  }
  return bytes
}

/** Returns the IPv4 address of `::ffff:a.b.c.d` (RFC 4291 §2.5.5.2). */
function mappedIpv4(bytes: AddressBytes): AddressBytes | undefined {
  const isMapped = bytes.slice(0, 12).join() === '0,0,0,0,0,0,0,0,0,0,255,255'
  return bytes.length === 16 && isMapped ? bytes.slice(12) : undefined
}
