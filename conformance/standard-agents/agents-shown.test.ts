// What clients of every kind are shown of an agent, also while a previous version of it is still known.
import { expect, test } from 'vitest'
import { says } from '@skein/ai/testing'
import { catalog, createRegistry, type AgentDefinition } from '@skein/runtime'
import { createHttp } from '@skein/server'
import { pair, solo } from './support/agents.ts'
import { simulate, type Simulation } from './support/simulate.ts'

const words = (of: string) => ({
  title: `Title ${of}`,
  description: `About ${of}.`,
  icon: `/${of}`,
})
const never = { script: () => says('x') }
const desk = (agent: Partial<AgentDefinition> = {}) => solo('desk', never, agent)
const team = (agent: Partial<AgentDefinition> = {}) => pair('team', { a: never, b: never }, agent)

type Json = Readonly<Record<string, unknown>>

/** Reads JSON over HTTP; with a body, by POST. */
function reader({ runtime }: Simulation): (path: string, body?: object) => Promise<Json> {
  const http = createHttp(runtime, { auth: 'none' })
  return async (path, body) => {
    const headers = { 'content-type': 'application/json', 'a2a-version': '1.0' }
    const init = body ? { method: 'POST', body: JSON.stringify(body), headers } : { headers }
    const response = await http.fetch(new Request(`http://localhost${path}`, init))
    expect(response.status).toBe(200)
    return (await response.json()) as Json
  }
}

test('SA-07 SA-08 clients of MCP and A2A are shown title and description, or the name', async () => {
  const { icon: _, ...told } = words('desk')
  const it = await simulate({ agents: [desk(words('desk')), team(words('team'))] })
  const bare = await simulate({ agents: [desk(), team()] })
  for (const name of ['desk', 'team']) {
    const { title, description } = words(name)
    const initialize = { jsonrpc: '2.0', id: 1, method: 'initialize', params: {} }
    const [full, none] = [reader(it), reader(bare)]
    expect((await full(`/agents/${name}/mcp`, initialize))['result']).toEqual({
      protocolVersion: expect.any(String) as string,
      capabilities: { tools: {} },
      serverInfo: { name, title, version: expect.any(String) as string },
      instructions: description,
    })
    expect((await none(`/agents/${name}/mcp`, initialize))['result']).toEqual({
      protocolVersion: expect.any(String) as string,
      capabilities: { tools: {} },
      serverInfo: { name, version: expect.any(String) as string },
    })
    const card = `/agents/${name}/.well-known/agent-card.json`
    const skill = { id: name, tags: ['agent'] }
    expect(await full(card)).toMatchObject({
      name: title,
      description,
      skills: [{ ...skill, name: title, description }],
    })
    expect(await none(card)).toMatchObject({ name, skills: [{ ...skill, name }] })
  }
  expect(await reader(it)('/agents/desk')).toMatchObject({ ...told, icon: '/desk' })
  for (const name of ['desk', 'team']) {
    const shown = await reader(bare)(`/agents/${name}`)
    for (const field of ['title', 'description', 'icon']) expect(shown).not.toHaveProperty(field)
  }
})

test('SA-07 SA-08 next to a previous version, agents are shown as they are now', async () => {
  const gone = solo('gone', never, words('gone'))
  const previous = createRegistry({ agents: [desk(words('old')), team(words('old')), gone] })
  const it = await simulate({ agents: [desk(words('new')), team()], previous })
  const expected = [
    { name: 'desk', ...words('new') },
    { name: 'gone', ...words('gone') },
    { name: 'team', title: undefined, description: undefined, icon: undefined },
  ]
  const shown = (list: readonly Json[]) =>
    list
      .map(({ name, title, description, icon }) => ({ name, title, description, icon }))
      .toSorted((a, b) => (String(a.name) < String(b.name) ? -1 : 1))
  expect(shown(catalog(it.runtime.registry) as unknown as Json[])).toEqual(expected)
  const { agents } = await reader(it)('/agents')
  expect(shown(agents as Json[])).toEqual(expected)
  it.runtime.replaceRegistry(createRegistry({ agents: [desk(words('newest'))] }))
  expect(shown(catalog(it.runtime.registry) as unknown as Json[])).toEqual([
    { name: 'desk', ...words('newest') },
    { name: 'gone', ...words('gone') },
    { name: 'team', ...words('old') },
  ])
})
