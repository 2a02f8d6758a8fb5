import { existsSync } from 'node:fs'
import type { ModelReference } from '@skein/ai'
import { vendors } from '@skein/ai/vendors'
import type { Problem, Registry } from '@skein/runtime'
import { envFile } from '../config/env-file.ts'

/**
 * Finds models whose API key is missing: their first request would fail. `files` are the files in which
 * variables were looked for, besides the environment.
 */
export function missingKeys(
  { agents }: Pick<Registry, 'agents'>,
  files: readonly string[] = [envFile()],
): readonly Problem[] {
  const problems = new Map<string, Problem>()
  const places = files.map((file) => `${file}${existsSync(file) ? '' : ' (no such file)'}`)
  for (const { name, a, b } of agents.values())
    for (const { prompt } of (b ? [a, b] : [a]).filter(isModelSide))
      for (const { model, definition } of prompt.models) {
        const { apiKey, headers } = definition?.config ?? {}
        const variables =
          vendors.find((one) => one.name === model.provider.name)?.keyVariables ?? []
        const isSet = variables.some((variable) => (process.env[variable] ?? '') !== '')
        if (variables.length === 0 || isSet || apiKey !== undefined || headers !== undefined)
          continue
        const subject = `agent "${name}"`
        const message = `there is no API key for ${model.provider.name}: ${variables.join(' or ')} is not set; looked in ${['the environment', ...places].join(' and ')}`
        problems.set(`${subject} ${model.modelId}`, {
          subject,
          field: `model ${model.modelId}`,
          message,
        })
      }
  return [...problems.values()]
}

const SCRIPTED = 'scripted'

/** Returns the models of each agent, by its name: the vendor and the model of each side. */
export function modelsByAgent({
  agents,
}: Pick<Registry, 'agents'>): Readonly<Record<string, string>> {
  const models = [...agents.values()].map(({ name, a, b }): [string, string] => {
    const sides = (b ? [a, b] : [a]).filter(hasModel)
    const names = sides.flatMap(({ prompt }) =>
      prompt.models.map(({ model }) => `${model.provider.name} ${model.modelId}`),
    )
    return [name, [...new Set(names)].join(', ') || 'code of its own']
  })
  return Object.fromEntries(models)
}

/** Finds agents that answer from a script: with such a model a server would tell its users what a test says. */
export function scriptedAgents({ agents }: Pick<Registry, 'agents'>): readonly Problem[] {
  return [...agents.values()].flatMap(({ name, a, b }) =>
    (b ? [a, b] : [a]).filter(hasModel).flatMap(({ prompt }) =>
      prompt.models
        .filter(({ model }) => isScripted(model))
        .map(({ model: { modelId } }) => ({
          subject: `agent "${name}"`,
          field: '',
          message: `answers from a script ("${modelId}") and asks no vendor. Give it the model of a vendor; in a project of \`npm create skein\`, put a key into .env. --scripted serves the script`,
        })),
    ),
  )
}

/** Whether a model is a script, or may ask one: the id of a fallback or a route has the names of its members. */
function isScripted({ provider, modelId }: ModelReference): boolean {
  if (provider.name !== 'fallback' && provider.name !== 'route') return provider.name === SCRIPTED
  return modelId.split('|').some((member) => /^(?:(?:fallback|route)\/)*scripted\//.test(member))
}

type AgentSide = NonNullable<ReturnType<Registry['agents']['get']>>['a']

/** Whether a model answers for a side of an agent: its own, or that of an `agent()` of `@skein/agents`. */
function hasModel({ handler }: AgentSide): boolean {
  return handler === undefined
}

/** Whether a side of an agent is answered by its models; otherwise its code asks a model itself, or none. */
function isModelSide({ handler, agent }: AgentSide): boolean {
  return handler === undefined && agent === undefined
}

/** Returns the names of the models that the agents use, in one line. */
export function modelsOf({ agents }: Pick<Registry, 'agents'>): string {
  const names = new Set<string>()
  for (const { a, b } of agents.values())
    for (const { prompt } of b ? [a, b] : [a])
      for (const { model } of prompt.models) {
        const provider = model.provider.name
        const isScripted = provider === SCRIPTED
        names.add(isScripted ? 'scripted model, no key used' : `${provider} ${model.modelId}`)
      }
  return [...names].join(', ')
}
