import { canonicalJson } from '@skein/base'
import type { JournalEvent, JournalItem } from './events.ts'
import { type Actor, type Identity, UAICP_VERSION } from '../contract/envelope.ts'

/** The members that all lines of a request have in common. */
interface LineFrame {
  readonly identity: Identity
  readonly request_id: string
  readonly trace_id: string
  readonly parent_trace_id: string | undefined
}

/** Converts a journal item into its line: the canonical JSON of its envelope. */
export type LineWriter = (item: JournalItem) => string

/**
 * Creates the line writer of one request. Because the shape of a line is fixed, it writes the members in
 * canonical order directly instead of sorting them each time; a test compares its output with that of
 * `canonicalJson`.
 */
export function createLineWriter(frame: LineFrame): LineWriter {
  let lastActor: Actor | undefined
  let lastIdentity = ''
  const { parent_trace_id, request_id, trace_id } = frame
  const parent = parent_trace_id ? `,"parent_trace_id":${JSON.stringify(parent_trace_id)}` : ''
  const ids = `${parent},"request_id":${JSON.stringify(request_id)}`
  const tail = `,"trace_id":${JSON.stringify(trace_id)},"uaicp_version":"${UAICP_VERSION}"}`
  const identityOf = (actor: Actor): string => {
    // Nearly all entries of a request have the same actor, which is the same object.
    if (actor !== lastActor) {
      lastIdentity = canonicalJson({ ...frame.identity, 'uaicp:actor': actor })
      lastActor = actor
    }
    return lastIdentity
  }
  return (item) => {
    const rollback = item.rollback ? `,"rollback_action":${canonicalJson(item.rollback)}` : ''
    const streaming = item.streaming ? `,"streaming":${canonicalJson(item.streaming)}` : ''
    return (
      `{"identity":${identityOf(item.actor)},"metadata":{"uaicp:attempt":${item.attempt},` +
      `"uaicp:data":${writeData(item)},"uaicp:event":"${item.type}","uaicp:seq":${item.seq}},` +
      `"outcome":"${item.outcome}"${ids}${rollback},"state":"${item.state}"${streaming},` +
      `"timestamp":"${timestampOf(item.at)}"${tail}`
    )
  }
}

/** Formats a time as RFC 3339 in UTC with milliseconds. */
export function timestampOf(at: number): string {
  if (at !== lastAt) {
    lastText = new Date(at).toISOString()
    lastAt = at
  }
  return lastText
}

// The last timestamp is cached, because many entries are written in the same millisecond.
let lastAt = Number.NaN
let lastText = ''

/**
 * Converts the data of an entry to canonical JSON. The end of a successful call is by far the most
 * frequent entry, so for speed its members are written directly in canonical order.
 */
function writeData(item: JournalEvent): string {
  const isOrdinary = item.type === 'call_settled' && item.data.sent_hash === undefined
  if (!isOrdinary || item.data.reasons || item.data.settled_by) {
    return canonicalJson(item.data)
  }
  const { args_hash, call, effect, evidence, risk, tool } = item.data
  const subtype = evidence?.subtype ? `,"subtype":${JSON.stringify(evidence.subtype)}` : ''
  const result = evidence?.result_hash ? `,"result_hash":"${evidence.result_hash}"` : ''
  const evidenceText = evidence
    ? `,"evidence":{"hash":"${evidence.hash}","id":"${evidence.id}"${result}${subtype},"type":"${evidence.type}"}`
    : ''
  return (
    `{"args_hash":"${args_hash}","call":${JSON.stringify(call)},"effect":"${effect}"${evidenceText},` +
    `"risk":"${risk}","tool":${JSON.stringify(tool)}}`
  )
}
