import { lookup as systemLookup, type LookupAddress } from 'node:dns'
import { BlockList, isIP, type LookupFunction } from 'node:net'
import { SkeinError } from '@skein/base'

const blocked = new BlockList()
for (const [network, bits] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
] as const)
  blocked.addSubnet(network, bits, 'ipv4')
for (const [network, bits] of [
  ['::', 128],
  ['::1', 128],
  ['64:ff9b::', 96],
  ['fc00::', 7],
  ['fe80::', 10],
  ['ff00::', 8],
] as const)
  blocked.addSubnet(network, bits, 'ipv6')

/** Whether an address is of this machine or of a network that the public does not reach. */
export function isPrivateAddress(address: string): boolean {
  const [, mapped] = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address) ?? []
  if (mapped !== undefined) return isPrivateAddress(mapped)
  const family = isIP(address)
  return family === 0 || blocked.check(address, family === 6 ? 'ipv6' : 'ipv4')
}

/**
 * Resolves names to public addresses only. It is the resolver of the connection itself, so that a name
 * cannot mean one address when it is checked and another when it is used.
 */
export const publicLookup: LookupFunction = (hostname, options, callback) => {
  systemLookup(hostname, { ...options, all: true }, (error, addresses: LookupAddress[]) => {
    const [first] = addresses ?? []
    if (error || !first) return callback(error ?? privateAddress(hostname), '', 4)
    if (addresses.some(({ address }) => isPrivateAddress(address)))
      return callback(privateAddress(hostname), '', 4)
    if (options.all) callback(null, addresses)
    else callback(null, first.address, first.family)
  })
}

export function privateAddress(hostname: string): SkeinError {
  return new SkeinError(`"${hostname}" is an address that webhooks are not sent to.`, {
    code: 'WEBHOOK_ADDRESS_PRIVATE',
    hint: 'Set allowPrivateAddresses if it is meant.',
  })
}
