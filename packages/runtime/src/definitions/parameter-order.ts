import { isPlainObject, type JsonSchema } from '@skein/base'
import type { ThreadState } from '../contract/thread-state.ts'
import { DefinitionError } from './definition-error.ts'

/** The members of a thread's state; the type ensures that none is missing. */
const stateMembers: { readonly [Name in keyof ThreadState]-?: true } = {
  threadId: true,
  agentId: true,
  userId: true,
  tenant: true,
  createdAt: true,
  terminated: true,
  children: true,
  arguments: true,
  signal: true,
  getMessages: true,
  getMessage: true,
  injectMessage: true,
  queueMessage: true,
  updateMessage: true,
  deleteMessage: true,
  env: true,
  hasEnv: true,
  envType: true,
  setEnv: true,
  getValue: true,
  setValue: true,
  updateValue: true,
  listValues: true,
  user: true,
  getUserValue: true,
  setUserValue: true,
  listUserValues: true,
  invokeTool: true,
  queueTool: true,
  getParentThread: true,
  getChildThread: true,
  notifyParent: true,
  setStatus: true,
  terminate: true,
  stopSession: true,
  scheduleEffect: true,
  getScheduledEffects: true,
  removeScheduledEffect: true,
  emit: true,
  writeFile: true,
  readFile: true,
  readTextFile: true,
  statFile: true,
  listFiles: true,
  removeFile: true,
  moveFile: true,
  getFileStats: true,
  readdirFile: true,
  unlinkFile: true,
  renameFile: true,
  findFiles: true,
  grepFiles: true,
}

/**
 * Throws for `execute: ({ city }) => …`: the first parameter is the state of the thread, so `city` would be undefined.
 * Only a parameter that takes its argument apart says what it expects, so other functions are not checked.
 */
export function checkParameterOrder({
  name,
  execute,
  parameters: { properties },
}: {
  readonly name: string
  readonly execute: unknown
  readonly parameters: JsonSchema
}): void {
  if (typeof execute !== 'function' || !isPlainObject(properties)) return
  const wrong = firstPattern(Function.prototype.toString.call(execute))
    .split(',')
    .map((part) => part.split(/[:=]/)[0]!.trim())
    .filter((one) => Object.hasOwn(properties, one) && !Object.hasOwn(stateMembers, one))
  if (wrong.length === 0) return
  const message = `takes the state of the thread first and the arguments second: write execute: (state, { ${wrong.join(', ')} }) => …`
  throw new DefinitionError([{ subject: `tool "${name}"`, field: 'execute', message }])
}

/** Returns what the first parameter of a function takes its argument apart into: `city` of `({ city }) => …`; else nothing. */
function firstPattern(source: string): string {
  const opening = source.indexOf('(')
  // Before the parameters there are only `async`, `function`, `*` and a name.
  if (opening < 0 || !/^[\w$*\s]*$/.test(source.slice(0, opening))) return ''
  const parameters = source.slice(opening + 1).trimStart()
  if (!parameters.startsWith('{')) return ''
  const pattern = parameters.slice(1, parameters.indexOf('}'))
  return pattern.includes('{') ? '' : pattern
}
