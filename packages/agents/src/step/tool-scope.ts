/** The part of `AsyncLocalStorage` that is used here. */
interface ScopeStorage {
  run<T>(scope: ToolScope, work: () => T): T
  getStore(): ToolScope | undefined
}

interface ProcessLike {
  getBuiltinModule?(name: 'node:async_hooks'): { AsyncLocalStorage: new () => ScopeStorage }
}

// Node, Bun, Deno and workers have `AsyncLocalStorage`. Elsewhere nothing is followed, and a run inside a tool
// is only known if it is given the tool's context.
const { process } = globalThis as { process?: ProcessLike }
const storage = (() => {
  const hooks = process?.getBuiltinModule?.('node:async_hooks')
  return hooks && new hooks.AsyncLocalStorage()
})()

/** The calls of one message while they run. Work that a tool leaves behind is not inside them any more. */
export interface ToolScope {
  isOver: boolean
}

/** Runs a function whose asynchronous work `isInsideTool` recognises. */
export function insideTool<T>(scope: ToolScope, work: () => T): T {
  return storage ? storage.run(scope, work) : work()
}

/** True in code that a running tool of an agent has started, as far as the platform can tell. */
export function isInsideTool(): boolean {
  return storage?.getStore()?.isOver === false
}
