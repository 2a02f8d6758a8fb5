import type { Middleware, ModelReference, Params } from '@skein/ai'

/** The vendor formats whose vendor stores conversations unless a parameter says otherwise, with that parameter. */
const stateless = { wire: 'google-interactions', params: { store: false } } as const

/**
 * Returns params with which no copy of the conversation stays at the vendor: the log of the thread is its only state.
 * Params of the user that set `store`, or that need a stored interaction, are sent as they are. For a combination of
 * models the member that answers decides, so the parameter goes with each request.
 */
export function withoutVendorState(
  model: ModelReference,
  params: Params,
): { readonly params: Params; readonly middleware: readonly Middleware[] } {
  const { store, background, previous_interaction_id: previous } = params
  if (store !== undefined || background === true || previous !== undefined)
    return { params, middleware: [] }
  const bound = model.provider.handlers.llm?.bind(model)
  if (bound?.wire === stateless.wire)
    return { params: { ...stateless.params, ...params }, middleware: [] }
  if (bound?.wire !== undefined) return { params, middleware: [] }
  const middleware: Middleware = {
    name: 'vendor state',
    onCycle: (request) => ({ ...request, scopes: [...(request.scopes ?? []), stateless] }),
  }
  return { params, middleware: [middleware] }
}
