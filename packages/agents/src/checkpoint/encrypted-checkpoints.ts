import { decodeBase64, encodeBase64 } from '@skein/base'
import { invalidUse } from '../contract/agent-error.ts'
import type { CheckpointStore } from '../contract/checkpoint-store.ts'
import type { AgentStateJSON } from '../state/state-types.ts'
import { AgentState } from '../state/state.ts'
import { KeyedQueue } from './checkpointer.ts'
import { stateText } from './saved-state.ts'

/** Options of `encryptedCheckpoints`. */
export interface EncryptedCheckpointOptions {
  /** The AES key: 16, 24 or 32 bytes, or a `CryptoKey` for AES-GCM. */
  readonly key: Uint8Array | CryptoKey
}

/**
 * Encrypts states before another store saves them (UAP §15.3). The ids of the state, session and agent and
 * the step number stay readable, because the store needs them for its metadata. The rest of the state is
 * encrypted with AES-GCM and can only be decrypted under its session id.
 */
export function encryptedCheckpoints(
  store: CheckpointStore,
  { key }: EncryptedCheckpointOptions,
): CheckpointStore {
  // Encryption is asynchronous, so without a queue an older state could be saved last.
  const order = new KeyedQueue()
  const imported = importKey(key)
  const unseal = async (
    sessionId: string,
    saved: AgentStateJSON | null,
  ): Promise<AgentStateJSON | null> => {
    if (!saved) return null
    const sealed = saved.metadata['sealed']
    if (typeof sealed !== 'string')
      throw invalidUse(`The checkpoint of ${JSON.stringify(sessionId)} is not encrypted.`)
    return JSON.parse(await open(await imported, sessionId, sealed)) as AgentStateJSON
  }
  imported.catch(() => {}) // prevents an unhandled rejection; the first save or load rejects with the error
  return {
    async save(sessionId, state, options) {
      const text = stateText(state) // made at once, because the caller may change the state object later
      return order.run(sessionId, async () => {
        const sealed = await seal(await imported, sessionId, text)
        return store.save(sessionId, envelope(state, sealed), options)
      })
    },
    load: async (sessionId) => unseal(sessionId, await store.load(sessionId)),
    loadVersion:
      store.loadVersion &&
      (async (sessionId, id) => unseal(sessionId, await store.loadVersion!(sessionId, id))),
    history: store.history && ((sessionId) => store.history!(sessionId)),
    loadMetadata: store.loadMetadata && ((sessionId) => store.loadMetadata!(sessionId)),
    delete: (sessionId) => order.run(sessionId, () => store.delete(sessionId)),
    list: () => store.list(),
  }
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
 * Returns a valid state that contains only the encrypted text and the readable fields, so that any store can
 * save it.
 */
function envelope({ id, step, metadata }: AgentStateJSON, sealed: string): AgentStateJSON {
  const { sessionId, agentId } = metadata
  return {
    ...AgentState.initial().toJSON(),
    id,
    step,
    metadata: { sessionId, agentId, sealed },
  }
}

async function seal(key: CryptoKey, sessionId: string, text: string): Promise<string> {
  const iv = crypto.getRandomValues(new Uint8Array(12))
  const algorithm = { name: 'AES-GCM', iv, additionalData: new TextEncoder().encode(sessionId) }
  const data = await crypto.subtle.encrypt(algorithm, key, new TextEncoder().encode(text))
  return `${encodeBase64(iv)}.${encodeBase64(new Uint8Array(data))}`
}

async function open(key: CryptoKey, sessionId: string, sealed: string): Promise<string> {
  const [iv = '', data = ''] = sealed.split('.')
  const algorithm = {
    name: 'AES-GCM',
    iv: Uint8Array.from(decodeBase64(iv)),
    additionalData: new TextEncoder().encode(sessionId),
  }
  try {
    const text = await crypto.subtle.decrypt(algorithm, key, Uint8Array.from(decodeBase64(data)))
    return new TextDecoder().decode(text)
  } catch (error) {
    throw new Error(
      `The checkpoint of ${JSON.stringify(sessionId)} was sealed with another key, or changed.`,
      { cause: error },
    )
  }
}
