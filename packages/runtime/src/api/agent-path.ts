import type { ApiContext } from './api-context.ts'
import type { ThreadHead } from '../store/head.ts'

/** Finds the names of the agents from the root thread down to a thread; each thread is looked up once. */
export class AgentPaths {
  readonly #context: ApiContext
  readonly #known = new Map<string, Promise<readonly string[]>>()

  constructor(context: ApiContext) {
    this.#context = context
  }

  of(head: ThreadHead): Promise<readonly string[]> {
    const path = this.#known.get(head.id) ?? this.#find(head)
    this.#known.set(head.id, path)
    return path
  }

  async #find({ agent, parentId }: ThreadHead): Promise<readonly string[]> {
    const parent = parentId === null ? undefined : await this.#context.store.head(parentId)
    return parent ? [...(await this.of(parent)), agent] : [agent]
  }
}
