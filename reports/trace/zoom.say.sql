SELECT printf('%.4g us of the step', max(shown_us)) || ifnull(printf('; rows of layer %s are read from %.4g to %.4g us',
        max(layer) FILTER (WHERE series = 'fetch'), min(start_us) FILTER (WHERE series = 'fetch'), max(end_us) FILTER (WHERE series = 'fetch')), '')
    || '. Ranges that reach beyond it are cut.'
FROM figure;
