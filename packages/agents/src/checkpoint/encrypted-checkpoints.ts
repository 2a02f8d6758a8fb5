import { decodeBase64, encodeBase64 } from '@skein/base'
import { invalidUse } from '../contract/agent-error.ts'
import type { CheckpointStore } from '../contract/checkpoint-store.ts'
import type { AgentStateJSON } from '../state/state-types.ts'
import { AgentState } from '../state/state.ts'
import { KeyedQueue } from './checkpointer.ts'
import { decodeVersions, ownCopy, VersionWriter } from './versions.ts'

/** Options of `encryptedCheckpoints`. */
export interface EncryptedCheckpointOptions {
  /** The AES key: 16, 24 or 32 bytes, or a `CryptoKey` for AES-GCM. */
  readonly key: Uint8Array | CryptoKey
}

/** The encrypted parts of one session's newest version, and the writer that encodes its next version. */
interface Chain {
  readonly writer: VersionWriter
  readonly parts: readonly string[]
}

/**
 * Encrypts states before another store saves them (UAP §15.3). The ids of the state, session and agent and
 * the step number stay readable, because the store needs them for its metadata. The rest of the state is
 * encrypted with AES-GCM and can only be decrypted under its session id.
 *
 * A version is a list of encrypted parts: a whole state, then what changed with each save. A save adds one
 * part to the list, so that a store that writes only what changed writes only that part.
 */
export function encryptedCheckpoints(
  store: CheckpointStore,
  { key }: EncryptedCheckpointOptions,
): CheckpointStore {
  // Encryption is asynchronous, so without a queue an older state could be saved last.
  const order = new KeyedQueue()
  const chains = new Map<string, Chain>()
  const cryptoKey = importKey(key)
  const unseal = async (
    sessionId: string,
    version: AgentStateJSON | null,
  ): Promise<AgentStateJSON | null> => {
    if (!version) return null
    const { sealed } = version.metadata
    // Older versions of this package wrote the whole state as one text.
    if (typeof sealed === 'string')
      return JSON.parse(await open(await cryptoKey, sessionId, { sealed })) as AgentStateJSON
    if (sealed !== true)
      throw invalidUse(`The checkpoint of ${JSON.stringify(sessionId)} is not encrypted.`)
    const parts = version.reasoning ?? []
    const texts = await Promise.all(
      parts.map(async (part, index) => {
        const after = { sealed: part, index, before: parts[index - 1] }
        return JSON.parse(await open(await cryptoKey, sessionId, after)) as unknown
      }),
    )
    return decodeVersions(texts.map((value, index) => ({ isWhole: index === 0, value })))
  }
  cryptoKey.catch(() => {}) // prevents an unhandled rejection; the first save or load rejects with the error
  return {
    async save(sessionId, given, options) {
      const state = ownCopy(given) // made immediately, because the caller may change the state object later
      return order.run(sessionId, async () => {
        const { writer, parts: before } = chains.get(sessionId) ?? newChain()
        // The chain is removed until the save has succeeded: after a failure, the next save writes a whole state.
        chains.delete(sessionId)
        const { isWhole, text } = writer.encode(state)
        const sealedBefore = isWhole ? [] : before
        const place = { index: sealedBefore.length, before: sealedBefore.at(-1) }
        const parts = [...sealedBefore, await seal(await cryptoKey, sessionId, { text, ...place })]
        const version = await store.save(sessionId, envelope(state, parts), options)
        chains.set(sessionId, { writer, parts })
        return version
      })
    },
    load: async (sessionId) => unseal(sessionId, await store.load(sessionId)),
    loadVersion:
      store.loadVersion &&
      (async (sessionId, id) => unseal(sessionId, await store.loadVersion!(sessionId, id))),
    history: store.history && ((sessionId) => store.history!(sessionId)),
    loadMetadata: store.loadMetadata && ((sessionId) => store.loadMetadata!(sessionId)),
    finish: store.finish && ((sessionId) => order.run(sessionId, () => store.finish!(sessionId))),
    delete: (sessionId) =>
      order.run(sessionId, () => {
        chains.delete(sessionId)
        return store.delete(sessionId)
      }),
    list: () => store.list(),
  }
}

function newChain(): Chain {
  return { writer: new VersionWriter(), parts: [] }
}

async function importKey(key: Uint8Array | CryptoKey): Promise<CryptoKey> {
  if (!(key instanceof Uint8Array)) return key
  if (![16, 24, 32].includes(key.length))
    throw invalidUse(`A key has 16, 24 or 32 bytes, not ${key.length}.`)
  return crypto.subtle.importKey('raw', Uint8Array.from(key), 'AES-GCM', false, [
    'encrypt',
    'decrypt',
  ])
}

/**
 * Returns a valid state that contains only the encrypted parts and the readable fields, so that any store can
 * save it. The parts are in `reasoning`, a list of texts that stores expect to grow at its end.
 */
function envelope(
  { id, step, metadata }: AgentStateJSON,
  parts: readonly string[],
): AgentStateJSON {
  const { sessionId, agentId } = metadata
  return {
    ...AgentState.initial().toJSON(),
    id,
    step,
    metadata: { sessionId, agentId, sealed: true },
    reasoning: parts,
  }
}

/** The place of an encrypted part in the list of its version: its position, and the part before it. */
interface Place {
  readonly index?: number
  readonly before?: string | undefined
}

/**
 * Returns the data that AES-GCM authenticates together with a part: the session id, the position of the part,
 * and the end of the part before, which is that part's authentication tag. So parts cannot be left out, moved
 * or mixed between sessions.
 */
function boundTo(sessionId: string, { index, before = '' }: Place): Uint8Array<ArrayBuffer> {
  const place = index === undefined ? '' : `\n${index}\n${before.slice(-24)}`
  return new TextEncoder().encode(sessionId + place)
}

async function seal(
  key: CryptoKey,
  sessionId: string,
  { text, ...place }: Place & { readonly text: string },
): Promise<string> {
  const iv = crypto.getRandomValues(new Uint8Array(12))
  const algorithm = { name: 'AES-GCM', iv, additionalData: boundTo(sessionId, place) }
  const data = await crypto.subtle.encrypt(algorithm, key, new TextEncoder().encode(text))
  return `${encodeBase64(iv)}.${encodeBase64(new Uint8Array(data))}`
}

async function open(
  key: CryptoKey,
  sessionId: string,
  { sealed, ...place }: Place & { readonly sealed: string },
): Promise<string> {
  const [iv = '', data = ''] = sealed.split('.')
  try {
    const algorithm = {
      name: 'AES-GCM',
      iv: Uint8Array.from(decodeBase64(iv)),
      additionalData: boundTo(sessionId, place),
    }
    const text = await crypto.subtle.decrypt(algorithm, key, Uint8Array.from(decodeBase64(data)))
    return new TextDecoder().decode(text)
  } catch (error) {
    throw new Error(
      `The checkpoint of ${JSON.stringify(sessionId)} was sealed with another key, or changed.`,
      { cause: error },
    )
  }
}
