import { existsSync } from 'node:fs'
import type { DiscoveredRegistry, Registry, ResolvedSide } from '@skein/runtime'
import { CommandError } from '../command-error.ts'
import { definitionsFolder } from './places.ts'

/** Loads the definitions of a folder; says which folder it was when there are none. */
export async function loadDefinitions(named: string | undefined): Promise<DiscoveredRegistry> {
  const folder = definitionsFolder(named)
  if (!existsSync(folder))
    throw new CommandError(`There is no folder ${folder}.`, {
      code: 'FOLDER_NOT_FOUND',
      hint: 'Name one that holds agents/, prompts/ and tools/.',
    })
  const { discover } = await import('@skein/runtime')
  return discover(folder)
}

/** Which models the agents use, in a few words. */
export function modelsOf({ agents }: Pick<Registry, 'agents'>): string {
  const names = new Set<string>()
  for (const { a, b } of agents.values())
    for (const side of b ? [a, b] : [a]) for (const name of modelNames(side)) names.add(name)
  return [...names]
    .map((name) => (name === SCRIPTED ? 'scripted model, no key used' : name))
    .join(', ')
}

const SCRIPTED = 'scripted'

function modelNames({ prompt }: ResolvedSide): readonly string[] {
  return prompt.models.map(({ model }) => {
    const provider = model.provider.name
    return provider === SCRIPTED ? SCRIPTED : `${provider} ${model.modelId}`
  })
}
