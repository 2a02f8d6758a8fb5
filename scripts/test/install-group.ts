import type { TestProject } from 'vitest/node'
import { groups } from './groups.ts'
import { installGroup } from './peers-of-group.ts'

/** Before the first test of a group: its packages are there, also where Vitest was started by hand. */
export default async function setup({ name }: TestProject): Promise<void> {
  const group = groups.find((one) => one.name === name)
  if (group === undefined) return
  const failure = await installGroup(group)
  if (failure !== undefined)
    throw new Error(`npm could not install the packages of ${name}:\n${failure}`)
}
