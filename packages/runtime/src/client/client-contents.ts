import type { JsonValue } from '@skein/base'
import type {
  ThreadEffects,
  ThreadEnv,
  ThreadFiles,
  ThreadValues,
  ThreadVariables,
} from '../runtime-api.ts'
import type { FileStat, ScheduledEffect } from '../thread-state.ts'
import { ClientError, isThere, path, type Requester, restPath } from './requester.ts'

type Variables = Awaited<ReturnType<ThreadEnv['list']>>

export function filesOf(requester: Requester): Omit<ThreadFiles, 'move'> {
  const at = (threadId: string, name: string): string =>
    `${path`/threads/${threadId}`}/files/${restPath(name)}`
  const list: ThreadFiles['list'] = async (threadId, prefix) => {
    const { files } = await requester.json<{ files: FileStat[] }>(
      'GET',
      path`/threads/${threadId}/files`,
      { query: { prefix } },
    )
    return files
  }
  const stat: ThreadFiles['stat'] = async (threadId, name) =>
    (await list(threadId, name)).find((file) => file.path === name)
  return {
    list,
    stat,
    async read(threadId, name) {
      const response = await requester.send('GET', at(threadId, name))
      const bytes = new Uint8Array(await response.arrayBuffer())
      const found = await stat(threadId, name)
      if (found) return { stat: found, bytes }
      throw new ClientError(`The file "${name}" was removed meanwhile.`, {
        code: 'FILE_NOT_FOUND',
        status: 404,
      })
    },
    write: (threadId, name, bytes, { mediaType } = {}) =>
      requester.json('PUT', at(threadId, name), {
        body: bytes,
        headers: { 'content-type': mediaType ?? 'application/octet-stream' },
      }),
    remove: (threadId, name) =>
      isThere(requester.json('DELETE', at(threadId, name)), 'FILE_NOT_FOUND'),
  }
}

export function valuesOf(requester: Requester): ThreadValues {
  const at = (threadId: string, key: string): string => path`/threads/${threadId}/values/${key}`
  return {
    async list(threadId, prefix) {
      const { values } = await requester.json<{ values: Record<string, JsonValue> }>(
        'GET',
        path`/threads/${threadId}/values`,
        { query: { prefix } },
      )
      return values
    },
    async get(threadId, key) {
      try {
        const found = await requester.json<{ value: JsonValue }>('GET', at(threadId, key))
        return found.value
      } catch (error) {
        if (error instanceof ClientError && error.code === 'VALUE_NOT_FOUND') return undefined
        throw error
      }
    },
    set: (threadId, key, value) =>
      value === null
        ? requester.json('DELETE', at(threadId, key))
        : requester.json('PUT', at(threadId, key), { json: { value } }),
  }
}

export function envOf(requester: Requester): ThreadEnv {
  return {
    async list(threadId) {
      const { variables } = await requester.json<{ variables: Variables }>(
        'GET',
        path`/threads/${threadId}/env`,
      )
      return variables
    },
    set: (threadId, name, value, options) => {
      const at = path`/threads/${threadId}/env/${name}`
      return value === null
        ? requester.json('DELETE', at)
        : requester.json('PUT', at, { json: { value, ...options } })
    },
  }
}

export function variablesOf(requester: Requester): ThreadVariables {
  return {
    get: (threadId, requestId) =>
      requester.json('GET', path`/threads/${threadId}/variables/${requestId}`),
    provide: (threadId, requestId, values) =>
      requester.json('POST', path`/threads/${threadId}/variables/${requestId}`, { json: values }),
  }
}

export function effectsOf(requester: Requester): ThreadEffects {
  return {
    async list(threadId) {
      const { effects } = await requester.json<{ effects: ScheduledEffect[] }>(
        'GET',
        path`/threads/${threadId}/effects`,
      )
      return effects
    },
    async schedule(threadId, name, args, when) {
      const schedule = typeof when === 'number' ? { delayMs: when } : when
      const { id } = await requester.json<{ id: string }>(
        'POST',
        path`/threads/${threadId}/effects`,
        { json: { name, args, ...schedule } },
      )
      return id
    },
    runNow: (threadId, effectId) =>
      requester.json('POST', path`/threads/${threadId}/effects/${effectId}/run`, { json: {} }),
    remove: (threadId, effectId) =>
      isThere(
        requester.json('DELETE', path`/threads/${threadId}/effects/${effectId}`),
        'EFFECT_NOT_FOUND',
      ),
  }
}
