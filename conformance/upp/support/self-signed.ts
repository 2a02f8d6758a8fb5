import { generateKeyPairSync, sign } from 'node:crypto'

/** A certificate that vouches for itself, valid for an hour around now, and its key; both PEM. */
export function selfSignedCertificate(commonName: string): { key: string; cert: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const ecdsaWithSha256 = der(0x30, oid([1, 2, 840, 10045, 4, 3, 2]))
  const name = der(
    0x30,
    der(0x31, der(0x30, oid([2, 5, 4, 3]), der(0x0c, Buffer.from(commonName)))),
  )
  const hourMs = 3_600_000
  const validity = der(0x30, utcTime(Date.now() - hourMs), utcTime(Date.now() + hourMs))
  const certificate = der(
    0x30,
    der(0xa0, der(0x02, Buffer.of(2))), // version 3
    der(0x02, Buffer.of(1)), // serial number
    ecdsaWithSha256,
    name, // issuer
    validity,
    name, // subject
    publicKey.export({ type: 'spki', format: 'der' }),
  )
  const signature = sign('sha256', certificate, privateKey)
  const whole = der(
    0x30,
    certificate,
    ecdsaWithSha256,
    der(0x03, Buffer.concat([Buffer.of(0), signature])),
  )
  const lines = whole.toString('base64').match(/.{1,64}/g)!
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
    cert: ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n'),
  }
}

/** One DER element: tag, length, contents. */
function der(tag: number, ...contents: Buffer[]): Buffer {
  const body = Buffer.concat(contents)
  const { length } = body
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length]
  return Buffer.concat([Buffer.of(tag, ...size), body])
}

/** An object identifier: the first two numbers share a byte, the others are base 128. */
function oid([first = 0, second = 0, ...rest]: readonly number[]): Buffer {
  const bytes = rest.flatMap((number) => {
    const digits = [number & 0x7f]
    for (let left = number >> 7; left > 0; left >>= 7) digits.unshift((left & 0x7f) | 0x80)
    return digits
  })
  return der(0x06, Buffer.of(first * 40 + second, ...bytes))
}

function utcTime(ms: number): Buffer {
  const text = new Date(ms).toISOString().replace(/[-:T]|\.\d+/g, '')
  return der(0x17, Buffer.from(text.slice(2))) // two digits of the year
}
