# Completions for fish.
function __spektacular_complete
    set -l before (commandline -opc)
    set -l word (commandline -ct)
    set -l flag (string match -r -- '^--[^=]*=' $word)
    for line in (spektacular __complete .$word $before[2..-1] 2>/dev/null)
        switch $line
            case :files
                printf "$flag%s\n" (__fish_complete_path (string replace -- "$flag" '' $word))
            case :folders
                printf "$flag%s\n" (__fish_complete_directories (string replace -- "$flag" '' $word))
            case '*'
                echo $line
        end
    end
end
complete -c spektacular -f -a '(__spektacular_complete)'
