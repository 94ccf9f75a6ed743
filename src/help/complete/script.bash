# Completions for bash: source <(spektacular completions bash)
_spektacular() {
    local cur=${COMP_WORDS[COMP_CWORD]} line
    # --flag=value comes as three words.
    [[ $cur == = ]] && cur=
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
        :files) compopt -o filenames 2>/dev/null; IFS=$'\n' COMPREPLY=($(compgen -f -- "$cur")) ;;
        :folders) compopt -o filenames 2>/dev/null; IFS=$'\n' COMPREPLY=($(compgen -d -- "$cur")) ;;
        *) COMPREPLY+=("${line%%$'\t'*}") ;;
        esac
    done < <(spektacular __complete ".$cur" "${COMP_WORDS[@]:1:COMP_CWORD-1}" 2>/dev/null)
}
complete -F _spektacular spektacular
