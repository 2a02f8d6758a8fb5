import type { JsonObject, JsonValue } from '@skein/base'
import type { Params, RequestScope, WireName } from '../contract/provider.ts'
import { objectOf } from '../wires/read-json.ts'

/** Parameters that OpenAI's two formats have under the same name. */
const sharedNames = [
  'metadata',
  'prompt_cache_key',
  'prompt_cache_retention',
  'safety_identifier',
  'service_tier',
  'store',
  'user',
] as const

/** The client's parameters in the other of OpenAI's two formats, for models of OpenAI alone. */
export interface SiblingParams {
  readonly scopes: readonly RequestScope[]
  /** The client's names of what the scopes hold. */
  readonly names: ReadonlySet<string>
}

/** Reads what a client of one of OpenAI's formats wrote and no setting of ours expresses, for the other format. */
export function readSibling(params: Params, from: WireName): SiblingParams {
  if (from !== 'openai-chat' && from !== 'openai-responses') return { scopes: [], names: new Set() }
  const fields = params as JsonObject // the params are from a parsed JSON body
  const ownParams: Record<string, JsonValue> = {}
  const names = new Set<string>()
  const write = (name: string, own: string, value: JsonValue | undefined): void => {
    if (value === undefined) return
    ownParams[own] = value
    names.add(name)
  }
  for (const name of sharedNames) write(name, name, fields[name])
  const { reasoning_effort: effort, verbosity } = fields
  if (from === 'openai-chat') {
    write('reasoning_effort', 'reasoning', effort === undefined ? undefined : { effort })
    write('verbosity', 'text', verbosity === undefined ? undefined : { verbosity })
  } else {
    write('reasoning', 'reasoning_effort', objectOf(fields['reasoning'])?.['effort'])
    write('text', 'verbosity', objectOf(fields['text'])?.['verbosity'])
  }
  if (names.size === 0) return { scopes: [], names }
  const wire = from === 'openai-chat' ? 'openai-responses' : 'openai-chat'
  const scopes = vendors.map((provider) => ({ provider, wire, params: ownParams }) as const)
  return { scopes, names }
}

const vendors = ['openai', 'azure-openai']
