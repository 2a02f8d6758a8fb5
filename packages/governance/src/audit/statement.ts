import { decodeBase64, encodeBase64, type JsonValue } from '@skein/base'
import { hashJson } from '../contract/envelope.ts'
import {
  type PrivateJwk,
  type PublicJwk,
  type SigningKey,
  toSigningKey,
  toVerifyKey,
  type VerifyKey,
} from '../keys/keys.ts'
import type { Delivered } from '../contract/run.ts'

/** The `predicateType` of the statements that this package makes. */
export const DELIVERY_PREDICATE = 'urn:uaicp:delivery:0.3'

const STATEMENT_TYPE = 'https://in-toto.io/Statement/v1'
const PAYLOAD_TYPE = 'application/vnd.in-toto+json'

/**
 * An in-toto statement about a delivered value: the evidence and reports that it is based on, and where
 * the entries of its request are in the log.
 */
export interface DeliveryStatement {
  readonly _type: typeof STATEMENT_TYPE
  readonly subject: readonly {
    readonly name: string
    readonly digest: { readonly sha256: string }
  }[]
  readonly predicateType: string
  readonly predicate: DeliveryPredicate
}

/** The evidence and the reports of a delivery, and its place in the log. */
export interface DeliveryPredicate {
  readonly request_id: string
  readonly trace_id: string
  readonly evidence: readonly {
    readonly evidence_id: string
    readonly evidence_type: string
    readonly source: string
    readonly hash: string
  }[]
  readonly reports: readonly {
    readonly report_id: string
    readonly verifier_id: string
    readonly status: string
    readonly hash: string
  }[]
  readonly log: {
    readonly first: number | null
    readonly last: number | null
    readonly checkpoint: string | null
  }
}

/** A signed payload in the DSSE format, which every in-toto tool reads. */
export interface DsseEnvelope {
  readonly payloadType: string
  readonly payload: string
  readonly signatures: readonly { readonly keyid: string; readonly sig: string }[]
}

/** Converts a delivery into a statement. It contains digests of the payloads, not the payloads. */
export function toStatement(delivered: Delivered<JsonValue>): DeliveryStatement {
  const { value, evidence, reports, receipt } = delivered
  return {
    _type: STATEMENT_TYPE,
    subject: [
      { name: receipt.request_id, digest: { sha256: hashJson(value).slice('sha256:'.length) } },
    ],
    predicateType: DELIVERY_PREDICATE,
    predicate: {
      request_id: receipt.request_id,
      trace_id: receipt.trace_id,
      evidence: evidence.map(({ evidence_id, evidence_type, source, hash }) => ({
        evidence_id,
        evidence_type,
        source,
        hash,
      })),
      reports: reports.map((report) => {
        const { report_id, verifier_id, status } = report
        return { report_id, verifier_id, status, hash: hashJson(report) }
      }),
      log: {
        first: receipt.first ?? null,
        last: receipt.last ?? null,
        checkpoint: receipt.checkpoint ?? null,
      },
    },
  }
}

/** Signs a statement. The exact bytes are signed, so that readers need no canonical form of JSON. */
export async function signStatement(
  statement: DeliveryStatement,
  key: PrivateJwk | SigningKey,
): Promise<DsseEnvelope> {
  const signer = toSigningKey(key)
  const payload = new TextEncoder().encode(JSON.stringify(statement))
  const sig = encodeBase64(await signer.sign(preAuthEncoding(payload)))
  return {
    payloadType: PAYLOAD_TYPE,
    payload: encodeBase64(payload),
    signatures: [{ keyid: signer.kid, sig }],
  }
}

/** Returns the statement in an envelope if one of the keys signed it; undefined otherwise. */
export async function verifyStatement(
  envelope: DsseEnvelope,
  keys: readonly (PublicJwk | VerifyKey)[],
): Promise<DeliveryStatement | undefined> {
  if (envelope.payloadType !== PAYLOAD_TYPE) return undefined
  try {
    const payload = decodeBase64(envelope.payload)
    const signedBytes = preAuthEncoding(payload)
    for (const { sig } of envelope.signatures) {
      for (const key of keys.map(toVerifyKey)) {
        if (!(await key.verify(signedBytes, decodeBase64(sig)))) continue
        return JSON.parse(new TextDecoder().decode(payload)) as DeliveryStatement
      }
    }
  } catch {
    return undefined // Not base64 or not JSON: not a statement.
  }
  return undefined
}

/**
 * Builds the bytes that DSSE signs: type and payload, each with its length, so that no byte can be moved
 * from one to the other.
 */
function preAuthEncoding(payload: Uint8Array): Uint8Array {
  const head = new TextEncoder().encode(
    `DSSEv1 ${PAYLOAD_TYPE.length} ${PAYLOAD_TYPE} ${payload.length} `,
  )
  const bytes = new Uint8Array(head.length + payload.length)
  bytes.set(head)
  bytes.set(payload, head.length)
  return bytes
}
