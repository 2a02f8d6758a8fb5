import type { Tool } from './tool.ts'

const marker = Symbol.for('skein.tool-context')

/**
 * Marks a tool whose `run` takes the context whatever its declared number of parameters: for
 * wrappers, default values and rest parameters, where `run.length` says nothing (UAP A19).
 */
export function withToolContext<T extends Tool>(tool: T): T {
  return deriveTool(tool, { [marker]: true })
}

/** A copy of a tool with some properties changed. Unlike a spread it keeps the methods of a class. */
export function deriveTool<T extends Tool>(tool: T, changes: object): T {
  return Object.create(Object.getPrototypeOf(tool) as object | null, {
    ...Object.getOwnPropertyDescriptors(tool),
    ...Object.getOwnPropertyDescriptors(changes),
  }) as T // Object.create does not carry the type
}

/** UAP §8.4: two declared parameters, or the marker. */
export function wantsContext(tool: Tool): boolean {
  return tool.run.length >= 2 || marker in tool
}
