/** A request for the variables of a child that could not be created yet. */
export interface VariablesRequest {
  readonly requestId: string
  readonly required: readonly string[]
  readonly missing: readonly string[]
  readonly expiresAt: string
  readonly status: 'open' | 'provided' | 'expired'
}

/** Requests for the values of variables that a child needs before it can be created. */
export interface ThreadVariables {
  get(threadId: string, requestId: string): Promise<VariablesRequest>
  /**
   * Stores the values and creates the deferred child with the arguments of the original call. Possible only
   * once per request.
   */
  provide(
    threadId: string,
    requestId: string,
    values: Readonly<Record<string, string>>,
    options?: { readonly by?: string },
  ): Promise<{ readonly reference: string }>
}
