import { BlockList } from 'node:net'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isInNetwork, isPrivateAddress } from './address.ts'

describe('private addresses', () => {
  test.each([
    '127.0.0.1',
    '10.1.2.3',
    '172.31.0.1',
    '192.168.1.1',
    '100.64.0.1',
    '0.0.0.0',
    '::ffff:10.0.0.1',
    '127.1',
    '2130706433',
    '0x7f000001',
    '0x7f.1',
    '0177.0.0.1',
    '017700000001',
    '010.0.0.1', // octal 8.0.0.1, decimal 10.0.0.1
    '10.0.0.1.',
    '169.254.169.254',
    '203.0.113.9',
    '255.255.255.255',
    '::',
    '::1',
    '[::1]',
    '0:0:0:0:0:0:0:1',
    '::127.0.0.1',
    '::8.8.8.8',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '0:0:0:0:0:ffff:10.0.0.1',
    '::ffff:0:10.0.0.1', // RFC 2765, translated
    'fe80::1',
    'fe80::1%eth0',
    'fec0::1',
    'fd00::1',
    'ff02::1',
    '64:ff9b::7f00:1',
    '64:ff9b::808:808',
    '64:ff9b:1::1',
    '2002:7f00:1::',
    '2001::1',
    '2001:db8::1',
    '3fff::1',
    '4000::1',
    'nonsense',
    '',
    '1.2.3.4.5',
    '256.1.1.1',
    '1::2::3',
    '12345::',
    ':1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:8:9',
    '1:2:3:4:5:6:7::8',
  ])('%j', (address) => expect(isPrivateAddress(address)).toBe(true))

  test.each([
    '1.1.1.1',
    '8.8.8.8',
    '134744072',
    '0x08080808',
    '172.32.0.1',
    '::ffff:8.8.8.8',
    '::ffff:808:808',
    '2606:4700::1111',
    '2a00:1450:4001:81b::200e',
    '[2606:4700::1111]',
  ])('%j is public', (address) => expect(isPrivateAddress(address)).toBe(false))
})

/**
 * The platform's own table of networks, filled from the IANA registries by hand. One for each family,
 * because the platform matches IPv4 addresses with IPv6 networks.
 */
const tables = { ipv4: new BlockList(), ipv6: new BlockList() }
for (const network of [
  '0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24',
  '192.0.2.0/24 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24',
  '224.0.0.0/4 240.0.0.0/4',
  '::/3 4000::/2 8000::/1 2001::/23 2001:db8::/32 2002::/16 3fff::/20',
]
  .join(' ')
  .split(' ')) {
  const [base = '', bits] = network.split('/')
  const family = base.includes(':') ? 'ipv6' : 'ipv4'
  tables[family].addSubnet(base, Number(bits), family)
}

/** Numbers at and beside the edges of the networks are as likely as all others together. */
const byte = fc.oneof(
  fc.nat({ max: 255 }),
  fc.constantFrom(
    0,
    1,
    9,
    10,
    11,
    63,
    64,
    88,
    99,
    100,
    126,
    127,
    128,
    168,
    169,
    172,
    192,
    198,
    203,
  ),
  fc.constantFrom(223, 224, 239, 240, 254, 255, 2, 15, 16, 18, 19, 20, 31, 32, 51, 113, 191),
)
const ipv4 = fc.tuple(byte, byte, byte, byte)
const group = fc.oneof(
  fc.nat({ max: 0xffff }),
  fc.constantFrom(0, 1, 0x64, 0xff9b, 0xffff, 0x2001, 0x1ff, 0x200, 0xdb8, 0x2002, 0x2003, 0x2000),
  fc.constantFrom(0x1fff, 0x3fff, 0xfff, 0x1000, 0x4000, 0xfe80, 0xfec0, 0xfd00, 0x2600, 0x7f00),
)
const ipv6 = fc.array(group, { minLength: 8, maxLength: 8 })

test('property: IPv4 agrees with the table, in every spelling', () => {
  fc.assert(
    fc.property(ipv4, fc.nat({ max: 6 }), (parts, form) => {
      const [a, b, c, d] = parts
      const dotted = parts.join('.')
      const whole = ((a * 256 + b) * 256 + c) * 256 + d
      const text = [
        dotted,
        String(whole),
        `0x${whole.toString(16)}`,
        parts.map((part) => `0x${part.toString(16)}`).join('.'),
        `${a}.${b}.${c * 256 + d}`,
        `::ffff:${dotted}`,
        `[::FFFF:${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}%1]`,
      ][form]!
      expect(isPrivateAddress(text), text).toBe(tables.ipv4.check(dotted, 'ipv4'))
    }),
    { numRuns: 3_000 },
  )
})

test('property: octal IPv4 of a private address is private', () => {
  fc.assert(
    fc.property(ipv4, (parts) => {
      const octal = parts.map((part) => `0${part.toString(8)}`).join('.')
      if (tables.ipv4.check(parts.join('.'), 'ipv4'))
        expect(isPrivateAddress(octal), octal).toBe(true)
    }),
  )
})

test('property: IPv6 agrees with the table, shortened or not', () => {
  fc.assert(
    fc.property(ipv6, fc.boolean(), (groups, isShort) => {
      const long = groups.map((one) => one.toString(16)).join(':')
      // The URL parser writes the shortest form.
      const text = isShort ? new URL(`http://[${long}]`).hostname : long
      const isMapped = groups.slice(0, 6).join() === '0,0,0,0,0,65535'
      if (!isMapped) expect(isPrivateAddress(text), text).toBe(tables.ipv6.check(long, 'ipv6'))
    }),
    { numRuns: 3_000 },
  )
})

test('property: any text gives an answer', () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      expect(typeof isPrivateAddress(text)).toBe('boolean')
    }),
  )
})

describe('networks', () => {
  test.each([
    ['10.1.2.3', '10.0.0.0/8', true],
    ['11.1.2.3', '10.0.0.0/8', false],
    ['::ffff:10.1.2.3', '10.0.0.0/8', true],
    ['10.0.0.1', '10.0.0.1', true],
    ['10.0.0.1', '10.0.0.1/32', true],
    ['10.0.0.2', '10.0.0.1', false],
    ['1.2.3.4', '0.0.0.0/0', true],
    ['fd12::1', 'fd00::/8', true],
    ['fe12::1', 'fd00::/8', false],
    ['10.0.0.1', 'fd00::/8', false],
    ['example.com', '10.0.0.0/8', false],
    ['10.0.0.1', '10.0.0.0/x', false],
    ['10.0.0.1', 'intranet', false],
  ])('%j in %j: %s', (address, network, expected) => {
    expect(isInNetwork(address, network)).toBe(expected)
  })

  test('property: agrees with the platform', () => {
    fc.assert(
      fc.property(ipv4, ipv4, fc.nat({ max: 32 }), (address, base, bits) => {
        const list = new BlockList()
        list.addSubnet(base.join('.'), bits, 'ipv4')
        const expected = list.check(address.join('.'), 'ipv4')
        expect(isInNetwork(address.join('.'), `${base.join('.')}/${bits}`)).toBe(expected)
      }),
    )
  })
})
