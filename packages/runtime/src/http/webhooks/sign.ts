import { createHmac } from 'node:crypto'
import { SkeinError } from '@skein/base'

/** The key inside a secret of the form `whsec_<base64>`. */
export function keyOf(secret: string): Buffer {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  if (secret.startsWith('whsec_') && key.length >= 24 && key.length <= 64) return key
  throw new SkeinError('The secret of a webhook is not `whsec_` and 24 to 64 bytes in base64.', {
    code: 'WEBHOOK_INVALID',
    hint: 'Make one with `echo whsec_$(openssl rand -base64 32)`.',
  })
}

/** Headers as Standard Webhooks has them: whoever knows the secret can tell that body and time are ours. */
export function signedHeaders(
  { id, body, at }: { readonly id: string; readonly body: string; readonly at: number },
  key: Buffer,
): Readonly<Record<string, string>> {
  const timestamp = Math.floor(at / 1000)
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': `v1,${signature}`,
  }
}
