/** The variables of the environment that ROCm's loader reads, once per process. */

export const LOADER_VARIABLES = [
  "ROCM_KPACK_DISABLE",
  "ROCM_KPACK_DEBUG",
  "ROCM_KPACK_PATH",
  "ROCM_KPACK_PATH_PREFIX",
] as const;

export type LoaderVariable = (typeof LOADER_VARIABLES)[number];

export type LoaderVariables = Readonly<Partial<Record<LoaderVariable, string>>>;

/** Windows splits lists at `;`, everything else at `:`. */
export type LoaderPlatform = "posix" | "windows";

export interface LoaderEnvironment {
  /** The variables as they were given. */
  readonly variables: LoaderVariables;
  readonly separator: ":" | ";";
  /** Every load is refused. */
  readonly disabled: boolean;
  readonly debug: boolean;
  /** Archives that replace the search; undefined when the search takes place. */
  readonly override: readonly string[] | undefined;
  /** Archives that are tried before the search. */
  readonly prefix: readonly string[];
}

/** What the loader makes of its variables. */
export function parseLoaderEnvironment(
  variables: LoaderVariables,
  platform: LoaderPlatform,
): LoaderEnvironment {
  const separator = platform === "windows" ? ";" : ":";
  const list = (value: string | undefined): readonly string[] =>
    (value ?? "").split(separator).filter((part) => part !== "");
  const override = list(variables.ROCM_KPACK_PATH);
  return {
    variables,
    separator,
    disabled: isOn(variables.ROCM_KPACK_DISABLE),
    debug: isOn(variables.ROCM_KPACK_DEBUG),
    override: override.length > 0 ? override : undefined,
    prefix: list(variables.ROCM_KPACK_PATH_PREFIX),
  };
}

/** Set, not empty and not starting with `0`: `no` and `false` count as on. */
function isOn(value: string | undefined): boolean {
  return value !== undefined && value !== "" && !value.startsWith("0");
}
